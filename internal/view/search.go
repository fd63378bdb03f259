package view

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// wordsName is the name of the view of words in the store; its number changes with
// what is kept: of each session a set of numbers from which no text can be read.
const wordsName = "words/1"

// Bounds.
const (
	maxWords  = 20000    // of a session; what a longer one has more isn't found
	maxText   = 64 << 10 // bytes of a long text that are looked at
	maxFolded = 4 << 20  // bytes of text between two saves, and the fact that goes beyond
	maxWord   = 40       // characters
	maxLooked = 2000     // facts, from the newest on, in which an excerpt is looked for
	around    = 80       // bytes of an excerpt on each side of a word
)

// wordsKey ends as rows of a session do, so that they go with it.
func wordsKey(id belay.SessionID) string { return "1/" + string(id) }

// words are the words of a text: letters and digits, in lower case, two
// characters or more.
func words(text string) (all []string) {
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
func whole(ctx context.Context, st store.Store, c belay.Content) (string, error) {
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

// wordsFolding folds the view of words.
type wordsFolding struct {
	st   store.Store
	sets map[belay.SessionID]map[uint32]bool
	size int // bytes of the texts
}

func (f *wordsFolding) fold(ctx context.Context, rec store.Record) error {
	id := rec.Event.IDs.Session
	for _, c := range texts(rec.Event) {
		text, err := whole(ctx, f.st, c)
		if err != nil {
			return err
		}
		f.size += len(text)
		for _, w := range words(text) {
			if err := f.load(ctx, id); err != nil {
				return err
			}
			f.sets[id][number(w)] = true
		}
	}
	return nil
}

// load makes the set of a session of its row, unless it is there.
func (f *wordsFolding) load(ctx context.Context, id belay.SessionID) error {
	if f.sets[id] != nil {
		return nil
	}
	row, err := f.st.ViewRow(ctx, wordsName, wordsKey(id))
	set := map[uint32]bool{}
	for i := 0; i+4 <= len(row); i += 4 {
		set[binary.BigEndian.Uint32(row[i:])] = true
	}
	f.sets[id] = set
	return err
}

func (f *wordsFolding) remove(_ context.Context, id belay.SessionID) error {
	f.sets[id] = map[uint32]bool{}
	return nil
}

func (f *wordsFolding) full() bool { return f.size > maxFolded }

func (f *wordsFolding) rows() (map[string]store.ViewRow, error) {
	rows := map[string]store.ViewRow{}
	for id, set := range f.sets {
		all := slices.Sorted(maps.Keys(set))
		var row []byte
		for _, n := range all[:min(len(all), maxWords)] {
			row = binary.BigEndian.AppendUint32(row, n)
		}
		rows[wordsKey(id)] = store.ViewRow{Data: row}
	}
	return rows, nil
}

// Search returns the sessions whose texts have all words of a question, as far as
// their words were folded.
func Search(ctx context.Context, st store.Store, question string) (map[belay.SessionID]bool, error) {
	wanted := words(question)
	if len(wanted) == 0 {
		return nil, belay.Errorf(belay.CodeUsage, "there is no word to look for").WithHint("a word has two letters or digits at least")
	}
	found := map[belay.SessionID]bool{}
	for key, row := range st.ViewRows(ctx, wordsName, "") {
		if !slices.ContainsFunc(wanted, func(w string) bool { return !has(row, number(w)) }) {
			found[belay.SessionID(strings.TrimPrefix(key, "1/"))] = true
		}
	}
	return found, ctx.Err()
}

// Newest are the sessions that were found, the one that changed last first, at most so many.
func Newest(ctx context.Context, st store.Store, found map[belay.SessionID]bool, most int) (all []Session, err error) {
	if len(found) <= fewFound {
		all, err = SessionsByID(ctx, st, slices.Collect(maps.Keys(found)))
		return all[:min(len(all), most)], err
	}
	var lists []*listReader
	for _, in := range (Filter{}).lists() {
		lists = append(lists, &listReader{st: st, in: in, next: partOfList})
	}
	err = eachOf(ctx, lists, found, func(s *Session) bool {
		all = append(all, *s)
		return len(all) < most
	})
	return all, err
}

// has reports whether a number is in a sorted row.
func has(row []byte, n uint32) bool {
	at := func(i int) uint32 { return binary.BigEndian.Uint32(row[4*i:]) }
	i := sort.Search(len(row)/4, func(i int) bool { return at(i) >= n })
	return i < len(row)/4 && at(i) == n
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
func Excerpt(ctx context.Context, st store.Store, id belay.SessionID, question string) (*Hit, error) {
	wanted := words(question)
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
			if s := excerpt(text, wanted); s != "" {
				return &Hit{rec.Event.ID(), rec.Event.IDs.Thread, s}, nil
			}
		}
	}
	return nil, nil
}

// Saying returns what reports whether the texts of a fact have all words of a question,
// or parts of words that it ends or begins with.
func Saying(st store.Store, question string) func(context.Context, event.Envelope) (bool, error) {
	wanted := strings.Fields(strings.ToLower(question))
	return func(ctx context.Context, e event.Envelope) (bool, error) {
		all := texts(e)
		if len(all) == 0 {
			return false, nil
		}
		var said strings.Builder
		for _, c := range all {
			text, err := whole(ctx, st, c)
			if err != nil {
				return false, err
			}
			said.WriteString(strings.ToLower(text) + "\n")
		}
		return !slices.ContainsFunc(wanted, func(w string) bool { return !strings.Contains(said.String(), w) }), nil
	}
}

// excerpt is the text around its first word that is asked for.
func excerpt(text string, words []string) string {
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
