//go:build unix

package file

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/patch"
)

//go:embed patch.md
var patchDoc string

type patchArgs struct {
	Patch string `json:"patch" jsonschema:"the patch"`
}

// Patch changes several files, all of them or none: everything is checked and
// written beside the files before the first name changes. A crash between two
// names is looked up and finished by the next attempt.
func Patch() tool.Tool {
	spec := writing("patch", strings.TrimSpace(patchDoc))
	spec.PathArg, spec.PathForm = "patch", tool.FormPatch
	return tool.NewRecoverable(spec, runPatch, recoverPatch)
}

func runPatch(ctx context.Context, c tool.Call, in patchArgs) (r tool.Result, err error) {
	p, err := patch.Parse(in.Patch)
	if err != nil {
		return r, unreadable(err)
	}
	if err := fewNames(p.Names()); err != nil {
		return r, err
	}
	err = atAll(ctx, c.Root, p.Names(), func(places map[string]*place) error {
		s := &patchSet{call: c, places: places, open: map[string]*change{}}
		if err := s.openAll(p.Names()); err != nil {
			return err
		}
		if err := p.Rewrite(s.restore); err != nil {
			return err
		}
		a, err := p.Apply(s.tree)
		if err != nil {
			return unfit(err)
		}
		if err := s.fits(a.Changes); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err = s.commit(a.Changes)
		if len(a.Remarks) > 0 {
			r.Text += "\nNot exactly as in the patch:\n" + strings.Join(a.Remarks, "\n")
		}
		return err
	})
	return done(r, err)
}

// atAll is at for several paths.
func atAll(ctx context.Context, root *os.Root, names []string, f func(places map[string]*place) error) error {
	for _, name := range names {
		clean, err := Clean(name)
		if err != nil {
			return err
		}
		if clean != name {
			return tool.Failf(tool.BadArguments, CodeBadPath, "%s is no name of a file", show(name))
		}
	}
	said := strings.Join(names, ", ")
	return withPlaces(ctx, root, names, said, show(said)+": a file", func(ps []*place) error {
		places := make(map[string]*place, len(ps))
		for _, p := range ps {
			places[p.name] = p
		}
		return f(places)
	})
}

// unreadable is what the model reads of a patch that is none.
func unreadable(err error) error {
	p, ok := errors.AsType[*patch.Problem](err)
	if !ok {
		return err
	}
	return tool.Failf(tool.BadArguments, p.Code, "%s", p.Error()).WithHint("%s", p.Hint)
}

// maxProblems is how many problems of one patch are reported.
const maxProblems = 6

// unfit is what the model reads of a patch that doesn't fit. Nothing was changed.
func unfit(err error) error {
	ps, ok := errors.AsType[patch.Problems](err)
	if !ok {
		return err
	}
	class := tool.BadArguments
	switch ps[0].Code {
	case patch.CodeMissing:
		class = tool.NotFound
	case patch.CodeExists:
		class = tool.Conflict
	}
	lines := make([]string, 0, len(ps))
	for _, p := range ps[:min(len(ps), maxProblems)] {
		line := p.Error()
		if p.Hint != "" {
			line += " (" + p.Hint + ")"
		}
		lines = append(lines, line)
	}
	if n := len(ps) - maxProblems; n > 0 {
		lines = append(lines, fmt.Sprintf("and %d problems more", n))
	}
	e := tool.Failf(class, ps[0].Code, "%s", strings.Join(lines, "\n"))
	return e.WithHint("nothing was changed; send the whole patch again")
}

// patchSet is the files of a patch on their way.
type patchSet struct {
	call   tool.Call
	places map[string]*place
	open   map[string]*change
}

// openAll opens every file and tells all that is wrong with them.
func (s *patchSet) openAll(names []string) error {
	var first *tool.Error
	var said []string
	total := 0
	for _, name := range names {
		ch, err := open(s.call, s.places[name])
		e, isTool := errors.AsType[*tool.Error](err)
		switch {
		case isTool && first == nil:
			first, said = e, []string{e.Message}
		case isTool:
			said, first.Files = append(said, e.Message), append(first.Files, e.Files...)
		case err != nil:
			return Problem(err, name)
		default:
			s.open[name] = ch
			total += len(ch.before)
		}
	}
	if first != nil {
		first.Files = bounded(first.Files, maxSeen/2)
	}
	switch {
	case first == nil && total > maxContent:
		return tool.Failf(tool.BadArguments, CodeTooLarge, "the files have %s together; one patch may touch %s", size(int64(total)), size(maxContent))
	case first == nil:
		return s.distinct(names)
	case len(said) > 1:
		first.Message = strings.Join(said[:min(len(said), maxProblems)], "; ")
		first.Hint = "nothing was changed; " + first.Hint + ", and the others"
	}
	return first
}

// distinct refuses two names of one file.
func (s *patchSet) distinct(names []string) error {
	for i, a := range names {
		for _, b := range names[:i] {
			pa, pb := s.places[a], s.places[b]
			if pa.real == pb.real || pa.info != nil && pb.info != nil && os.SameFile(pa.info, pb.info) {
				return tool.Failf(tool.BadArguments, CodeBadPath, "%s and %s are the same file", show(b), show(a)).WithHint("name it once")
			}
		}
	}
	return nil
}

// restore puts back what marks in the patch of a file stand for.
func (s *patchSet) restore(f *patch.File, text string) (string, error) {
	name := f.Old
	if name == "" {
		name = f.New
	}
	return s.open[name].restore(text)
}

// tree is the files as they are.
func (s *patchSet) tree(name string) (string, bool, error) {
	ch := s.open[name]
	return string(ch.before), !ch.absent, nil
}

// fits refuses contents that are too large and files that would be folders.
func (s *patchSet) fits(changes []patch.Change) error {
	is, total := map[string]bool{}, 0
	for _, c := range changes {
		is[c.Name] = c.Is
		total += len(c.After)
	}
	if total > maxContent {
		return tool.Failf(tool.BadArguments, CodeTooLarge, "the files would have %s together; one patch may make %s", size(int64(total)), size(maxContent))
	}
	for _, c := range changes {
		for dir := path.Dir(c.Name); c.Is && dir != "."; dir = path.Dir(dir) {
			if is[dir] {
				return tool.Failf(tool.BadArguments, CodeNotDirectory, "%s can't be a file and a folder", show(dir))
			}
		}
	}
	return nil
}

// seen is what the thread knows of the files afterwards, as much as a fact can
// hold: by the names of the patch first, then by those behind links.
func (s *patchSet) seen(changes []patch.Change) []event.FileSeen {
	var files, behind []event.FileSeen
	for _, c := range changes {
		seen := s.places[c.Name].seen(digestIf(c.Is, c.After))
		files, behind = append(files, seen[0]), append(behind, seen[1:]...)
	}
	return bounded(append(files, behind...), maxSeen)
}

const (
	maxNames = 3 << 10 // bytes that the names of a patch may have together
	maxSeen  = 9 << 10 // bytes of a fact for what is known of files
)

// fewNames refuses a patch whose names wouldn't fit into a fact.
func fewNames(names []string) error {
	n := 0
	for _, name := range names {
		n += event.TextLen(name)
	}
	if n <= maxNames {
		return nil
	}
	return tool.Failf(tool.BadArguments, CodeTooLarge, "the names in the patch have %d bytes together; %d are possible", n, maxNames).WithHint("send several patches")
}

// bounded is as many sights of files as fit.
func bounded(files []event.FileSeen, room int) []event.FileSeen {
	for i, f := range files {
		if room -= event.TextLen(f.Path) + len(f.Digest) + 26; room < 0 {
			return files[:i]
		}
	}
	return files
}

// text returns what was done, a line for each file.
func (s *patchSet) text(changes []patch.Change) string {
	var b strings.Builder
	moved := map[string]bool{}
	for _, c := range changes {
		for _, o := range changes {
			if c.From != "" && o.Name == c.From && !o.Is {
				moved[o.Name] = true
			}
		}
	}
	n := len(changes) - len(moved)
	fmt.Fprintf(&b, "patched %d file%s:", n, map[bool]string{true: "", false: "s"}[n == 1])
	for _, c := range changes {
		switch {
		case moved[c.Name]:
		case c.From != "" && moved[c.From]:
			fmt.Fprintf(&b, "\nmoved %s to %s: %s", c.From, c.Name, summary([]byte(s.before(c.From)), []byte(c.After)))
		case !c.Is:
			fmt.Fprintf(&b, "\nremoved %s", c.Name)
		case !c.Was:
			fmt.Fprintf(&b, "\ncreated %s: %s", c.Name, summary(nil, []byte(c.After)))
		default:
			fmt.Fprintf(&b, "\nchanged %s: %s", c.Name, summary([]byte(c.Before), []byte(c.After)))
		}
		if ch := s.open[c.Name]; ch != nil {
			b.WriteString(ch.note())
		}
	}
	return b.String()
}

func (s *patchSet) before(name string) string {
	if ch := s.open[name]; ch != nil {
		return string(ch.before)
	}
	return ""
}
