// Package search finds sessions by the words in them. It promises that a session
// which has all words of a question in its texts is found, whoever folded them
// and however often that was interrupted, until it is deleted; and that what it
// keeps of a session is a set of numbers from which no text can be read.
package search

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// name is the view's name in the store; its number changes with what is kept.
const name = "words/1"

// Bounds.
const (
	chunk     = 512      // facts between two saves
	maxWords  = 20000    // of a session; what a longer one has more isn't found
	maxText   = 64 << 10 // bytes of a long text that are looked at
	maxChunk  = 4 << 20  // bytes of text between two saves, and the fact that goes beyond
	maxWord   = 40       // characters
	maxLooked = 2000     // facts, from the newest on, in which an excerpt is looked for
	around    = 80       // bytes of an excerpt on each side of a word
)

// rowKey ends as rows of a session do, so that they go with it.
func rowKey(id belay.SessionID) string { return "1/" + string(id) }

// Words are the words of a text: letters and digits, in lower case, two
// characters or more.
func Words(text string) (all []string) {
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if n := utf8.RuneCountInString(w); n >= 2 && n <= maxWord {
			all = append(all, w)
		}
	}
	return all
}

func number(word string) uint32 {
	h := fnv.New64a()
	h.Write([]byte(word))
	sum := h.Sum64()
	return uint32(sum ^ sum>>32)
}

// texts is what a fact says to people and models.
func texts(e event.Envelope) []belay.Content {
	say := func(s ...string) []belay.Content { return []belay.Content{{Text: strings.Join(s, "\n")}} }
	switch p := e.Data.(type) {
	case event.SessionCreated:
		return say(p.Title, p.Workspace)
	case event.SessionUpdated:
		return say(append([]string{p.Title}, p.Tag...)...)
	case event.TaskCreated:
		return []belay.Content{p.Objective}
	case event.TurnSubmitted:
		return []belay.Content{p.Text}
	case event.TurnCompleted:
		return []belay.Content{p.Summary}
	case event.TurnFailed:
		return say(p.Reason)
	case event.ModelCompleted:
		all := []belay.Content{p.Text}
		for _, c := range p.Calls {
			all = append(all, belay.Content{Text: c.Name + " " + string(c.Args)})
		}
		return all
	case event.ToolResult:
		return []belay.Content{p.Output}
	case event.ToolFailed:
		return append(say(p.Problem.Message), p.Output)
	case event.ActionRequired:
		return []belay.Content{p.Prompt}
	case event.ArtifactChanged:
		return say(p.Path, p.Name, p.Note)
	}
	return nil
}

// whole is a content's text, as far as it is looked at. Content that is gone
// has its beginning in the fact.
func whole(ctx context.Context, st store.ReadModels, c belay.Content) (string, error) {
	if c.Ref == nil || !strings.HasPrefix(c.Ref.Media, "text/") {
		return c.Text, nil
	}
	r, err := st.Open(ctx, c.Ref.Digest)
	if errors.Is(err, store.ErrNotFound) {
		return c.Text, nil
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxText))
	return strings.ToValidUTF8(string(b), ""), err
}

// Fold is the view of the words in a store's sessions.
type Fold struct{ Store store.ReadModels }

// At is the position up to which the view is folded.
func (f Fold) At(ctx context.Context) (store.Position, error) {
	return f.Store.ViewPosition(ctx, name)
}

// UpTo folds until the view has come as far as end.
func (f Fold) UpTo(ctx context.Context, end store.Position) error {
	for more := true; more; {
		at, err := f.At(ctx)
		if err != nil || at >= end {
			return err
		}
		if more, err = f.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Step folds one chunk, which is bounded by the facts and by the text in it, and
// reports whether there may be more.
func (f Fold) Step(ctx context.Context) (more bool, err error) {
	from, err := f.At(ctx)
	if err != nil {
		return false, err
	}
	more, err = fold(ctx, f.Store, from)
	if errors.Is(err, store.ErrConflict) { // another process has folded it
		return true, nil
	}
	return more, err
}

// Catchup folds what the view hasn't seen, up to the end that the log has at the
// call.
func Catchup(ctx context.Context, st store.ReadModels) error {
	end, err := st.End(ctx)
	if err != nil {
		return err
	}
	return Fold{st}.UpTo(ctx, end)
}

// Rebuild drops what was folded and folds the log again.
func Rebuild(ctx context.Context, st store.ReadModels) error {
	for {
		at, err := st.ViewPosition(ctx, name)
		if err != nil {
			return err
		}
		err = st.SaveView(ctx, name, at, 0, nil)
		if err == nil {
			return Catchup(ctx, st)
		}
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// fold takes one chunk of the log.
func fold(ctx context.Context, st store.ReadModels, from store.Position) (more bool, err error) {
	end, err := st.End(ctx) // before the facts: all up to here are among those that are read
	if err != nil || end <= from {
		return false, err
	}
	var recs []store.Record
	for rec, err := range st.Scan(ctx, from) {
		if err != nil {
			return false, err
		}
		if recs = append(recs, rec); len(recs) == chunk {
			break
		}
	}
	n, sets, err := words(ctx, st, recs)
	if err != nil {
		return false, err
	}
	rows, err := merged(ctx, st, sets)
	if err != nil {
		return false, err
	}
	// What was deleted since was read before: its row mustn't come back.
	gone, err := st.Tombstones(ctx, from)
	if err != nil {
		return false, err
	}
	for _, t := range gone {
		if !t.Restored {
			rows[rowKey(t.Session)] = nil
		}
	}
	more = n < len(recs) || n == chunk
	if more || n > 0 && recs[n-1].Position > end {
		end = recs[n-1].Position
	}
	return more, st.SaveView(ctx, name, from, end, rows)
}

// words are those of the first n facts, by session: as many as a chunk has text for.
func words(ctx context.Context, st store.ReadModels, recs []store.Record) (n int, sets map[belay.SessionID]map[uint32]bool, err error) {
	sets = map[belay.SessionID]map[uint32]bool{}
	for size := 0; n < len(recs) && size <= maxChunk; n++ {
		id := recs[n].Event.IDs.Session
		for _, c := range texts(recs[n].Event) {
			text, err := whole(ctx, st, c)
			if err != nil {
				return 0, nil, err
			}
			size += len(text)
			for _, w := range Words(text) {
				if sets[id] == nil {
					sets[id] = map[uint32]bool{}
				}
				sets[id][number(w)] = true
			}
		}
	}
	return n, sets, nil
}

// merged are the rows of sessions with more words.
func merged(ctx context.Context, st store.ReadModels, sets map[belay.SessionID]map[uint32]bool) (map[string][]byte, error) {
	rows := map[string][]byte{}
	for id, set := range sets {
		row, err := st.ViewRow(ctx, name, rowKey(id))
		if err != nil {
			return nil, err
		}
		for i := 0; i+4 <= len(row); i += 4 {
			set[binary.BigEndian.Uint32(row[i:])] = true
		}
		all := make([]uint32, 0, len(set))
		for n := range set {
			all = append(all, n)
		}
		slices.Sort(all)
		out := make([]byte, 0, 4*len(all))
		for _, n := range all[:min(len(all), maxWords)] {
			out = binary.BigEndian.AppendUint32(out, n)
		}
		rows[rowKey(id)] = out
	}
	return rows, nil
}

// Sessions are the sessions whose texts have all words of a question.
func Sessions(ctx context.Context, st store.ReadModels, question string) (map[belay.SessionID]bool, error) {
	words := Words(question)
	if len(words) == 0 {
		return nil, belay.Errorf(belay.CodeUsage, "there is no word to look for").WithHint("a word has two letters or digits at least")
	}
	found := map[belay.SessionID]bool{}
	for key, row := range st.ViewRows(ctx, name) {
		if !slices.ContainsFunc(words, func(w string) bool { return !has(row, number(w)) }) {
			found[belay.SessionID(strings.TrimPrefix(key, "1/"))] = true
		}
	}
	return found, ctx.Err()
}

// has reports whether a number is in a sorted row.
func has(row []byte, n uint32) bool {
	low, high := 0, len(row)/4
	for low < high {
		mid := (low + high) / 2
		switch v := binary.BigEndian.Uint32(row[4*mid:]); {
		case v == n:
			return true
		case v < n:
			low = mid + 1
		default:
			high = mid
		}
	}
	return false
}

// Hit is where a session has a word of a question, as near to its end as it was
// looked for.
type Hit struct {
	Event   belay.EventID
	Thread  belay.ThreadID
	Excerpt string
}

// Excerpt looks for the newest fact of a session that has one of the words; nil
// when none is among the newest facts.
func Excerpt(ctx context.Context, st store.ReadModels, id belay.SessionID, question string) (*Hit, error) {
	words := Words(question)
	n := 0
	for rec, err := range st.Window(ctx, store.Window{Session: id, Newest: true}) {
		if err != nil {
			return nil, err
		}
		if n++; n > maxLooked {
			break
		}
		for _, c := range texts(rec.Event) {
			text, err := whole(ctx, st, c)
			if err != nil {
				return nil, err
			}
			if s := cut(text, words); s != "" {
				return &Hit{rec.Event.ID(), rec.Event.IDs.Thread, s}, nil
			}
		}
	}
	return nil, nil
}

// cut is the text around its first word that is asked for.
func cut(text string, words []string) string {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // a letter whose lower case has another length
		text = lower
	}
	for _, w := range words {
		i := strings.Index(lower, w)
		if i < 0 {
			continue
		}
		from, to := max(i-around, 0), min(i+len(w)+around, len(text))
		return strings.ToValidUTF8(text[from:to], "")
	}
	return ""
}
