package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
)

type verifyCmd struct {
	Against string `placeholder:"HEADS" help:"Compare with heads that were kept elsewhere: the output of belay verify --json."`
}

// headLine is a stream's end as verify prints and reads it.
type headLine struct {
	Stream belay.StreamID `json:"stream"`
	Seq    int64          `json:"sequence"`
	Hash   string         `json:"hash"`
}

// verdict is the last line of verify in JSON.
type verdict struct {
	OK       bool     `json:"ok"`
	Facts    int      `json:"facts"`
	Streams  int      `json:"streams"`
	Contents int      `json:"contents"` // blobs that facts name
	Compared int      `json:"compared,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

func (c *verifyCmd) run(ctx context.Context, a *app) (int, error) {
	want, err := a.heads(c.Against)
	if err != nil {
		return 0, err
	}
	dir, err := a.storeDir()
	if err != nil {
		return 0, err
	}
	if !hasStore(dir) {
		return 0, belay.Errorf(belay.CodeNotFound, "there is no store").At(dir).WithHint("--store DIR names another")
	}
	v := verification{want: want, refs: map[belay.Digest]string{}}
	if err := v.store(ctx, dir, a); err != nil {
		if belay.CodeOf(err) != belay.CodeStoreDamaged {
			return 0, err
		}
		v.problem(a.explain(err).Error())
	}
	return v.report(a), nil
}

// heads reads what an earlier verify printed.
func (a *app) heads(file string) (map[belay.StreamID]headLine, error) {
	if file == "" {
		return nil, nil
	}
	b, err := readUpTo(a.abs(file), 256<<20)
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%s", reason(err)).At("--against").WithHint("belay verify --json >HEADS makes such a file")
	}
	heads := map[belay.StreamID]headLine{}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, len(b)+1)
	for n := 1; lines.Scan(); n++ {
		var h headLine
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			return nil, belay.Errorf(belay.CodeUsage, "this is no line of belay verify --json").At(fmt.Sprintf("%s:%d", file, n)).WithHint("belay verify --json >HEADS makes such a file")
		}
		if h.Stream != "" {
			heads[h.Stream] = h
		}
	}
	if len(heads) == 0 {
		return nil, belay.Errorf(belay.CodeUsage, "it holds no heads").At(file).WithHint("belay verify --json >HEADS makes such a file")
	}
	return heads, nil
}

// verification is one look at everything a store holds.
type verification struct {
	verdict
	want    map[belay.StreamID]headLine
	heads   []headLine
	refs    map[belay.Digest]string // content that facts name → the first fact that does
	differs bool                    // from the heads it was compared with
}

func (v *verification) problem(s string) { v.Problems = append(v.Problems, s) }

// store opens a store without being able to change it and looks at all of it.
func (v *verification) store(ctx context.Context, dir string, a *app) (err error) {
	db, err := sqlite.Open(ctx, dir, sqlite.Options{Now: a.Now, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Check(ctx); err != nil {
		if belay.CodeOf(err) != belay.CodeStoreDamaged {
			return err
		}
		v.problem(a.explain(err).Error())
	}
	streams, err := v.streams(ctx, db)
	if err != nil {
		return err
	}
	for _, s := range streams {
		if err := v.stream(ctx, db, s); err != nil {
			if belay.CodeOf(err) != belay.CodeStoreDamaged {
				return err
			}
			v.problem(a.explain(err).Error())
		}
	}
	for s := range v.want {
		if !slices.Contains(streams, s) {
			v.differs = true
			v.problem(string(s) + ": it was there when the heads were kept, and is gone")
		}
	}
	return v.contents(ctx, db)
}

// streams lists the streams that have facts.
func (v *verification) streams(ctx context.Context, st store.Store) ([]belay.StreamID, error) {
	var all []belay.StreamID
	known := map[belay.StreamID]bool{}
	for r, err := range st.Scan(ctx, 0) {
		if belay.CodeOf(err) == belay.CodeStoreDamaged {
			v.problem(err.Error())
			break
		}
		if err != nil {
			return nil, err
		}
		v.Facts++
		if s := r.Event.Stream; !known[s] {
			known[s] = true
			all = append(all, s)
		}
	}
	v.Streams = len(all)
	return all, nil
}

// stream follows a stream's chain from its first fact to its end.
func (v *verification) stream(ctx context.Context, st store.Store, s belay.StreamID) error {
	end, err := st.Head(ctx, s)
	if err != nil {
		return err
	}
	hash, seq := store.Genesis(end.Session, s), int64(0)
	var buf []byte
	then := ""
	for ev, err := range st.Read(ctx, s, 0) {
		if err != nil {
			return err
		}
		row, err := store.Pack(end.Session, s, &ev)
		if err != nil {
			return err
		}
		hash, buf = store.Link(hash, &row, buf)
		seq = ev.Seq
		if seq == v.want[s].Seq {
			then = hex.EncodeToString(hash[:])
		}
		v.names(ev)
	}
	if seq != end.Seq {
		return store.Damaged(store.RowName(s, seq+1), "the stream should go on here")
	}
	v.heads = append(v.heads, headLine{s, end.Seq, hex.EncodeToString(end.Hash[:])})
	v.compare(s, then)
	return nil
}

func (v *verification) compare(s belay.StreamID, then string) {
	want, ok := v.want[s]
	if !ok {
		return
	}
	v.Compared++
	if then != want.Hash {
		v.differs = true
		v.problem(fmt.Sprintf("%s: up to fact %d it is not what it was when the heads were kept", s, want.Seq))
	}
}

// names notes the content that a fact names.
func (v *verification) names(ev event.Envelope) {
	where := store.RowName(ev.Stream, ev.Seq)
	for _, ref := range ev.Refs {
		v.note(ref, where)
	}
	raw, err := event.Encode(ev.Data)
	if err != nil || !bytes.Contains(raw, []byte(`"sha256:`)) {
		return
	}
	var payload any
	if json.Unmarshal(raw, &payload) == nil {
		v.walk(payload, where)
	}
}

// walk finds references wherever a payload has them.
func (v *verification) walk(x any, where string) {
	switch x := x.(type) {
	case []any:
		for _, y := range x {
			v.walk(y, where)
		}
	case map[string]any:
		digest, _ := x["digest"].(string)
		size, isRef := x["size"].(float64)
		if isRef && belay.Digest(digest).Valid() {
			v.note(belay.Ref{Digest: belay.Digest(digest), Size: int64(size)}, where)
			return
		}
		for _, y := range x {
			v.walk(y, where)
		}
	}
}

func (v *verification) note(ref belay.Ref, where string) {
	if _, ok := v.refs[ref.Digest]; !ok {
		v.refs[ref.Digest] = where
	}
}

// contents reads every content that a fact names; reading holds it against its
// digest.
func (v *verification) contents(ctx context.Context, st store.Store) error {
	v.Contents = len(v.refs)
	for d, where := range v.refs {
		_, err := st.Get(ctx, d)
		switch {
		case errors.Is(err, store.ErrNotFound):
			v.problem(where + ": the content it names is not there: " + string(d))
		case belay.CodeOf(err) == belay.CodeStoreDamaged:
			v.problem(where + ": the content it names is damaged: " + string(d))
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	return nil
}

// report prints what was found; damage is exit 8, a difference to kept heads exit 1.
func (v *verification) report(a *app) int {
	slices.Sort(v.Problems)
	v.Problems = slices.Compact(v.Problems)
	v.OK = len(v.Problems) == 0
	exit := belay.ExitOK
	switch {
	case v.OK:
	case v.differs:
		exit = belay.ExitFailed
	default:
		exit = belay.ExitStore
	}
	if a.JSON {
		for _, h := range v.heads {
			a.printJSON(h)
		}
		a.printJSON(v.verdict)
		return exit
	}
	for _, p := range v.Problems {
		fmt.Fprintf(a.Stdout, "damaged: %s\n", line(p))
	}
	if v.OK {
		fmt.Fprintf(a.Stdout, "whole: %s in %s, every hash follows from the one before; %s named by them, all as they were kept\n",
			plural(v.Facts, "fact"), plural(v.Streams, "stream"), plural(v.Contents, "content"))
		if v.want != nil {
			fmt.Fprintf(a.Stdout, "%s compared with the heads that were kept: nothing was changed before them\n", plural(v.Compared, "stream"))
		}
		return exit
	}
	fmt.Fprintf(a.Stderr, "try: keep a copy of the store as it is; sessions before the damage can still be read\n")
	return exit
}
