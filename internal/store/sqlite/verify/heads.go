package verify

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// headLine is a stream's end as a file of heads has it.
type headLine struct {
	Stream belay.StreamID `json:"stream"`
	Seq    int64          `json:"sequence"`
	Hash   string         `json:"hash"`
}

// WriteHeads writes heads as lines of JSON.
func WriteHeads(w io.Writer, heads []store.Head) error {
	out := json.NewEncoder(w)
	for _, h := range heads {
		if err := out.Encode(headLine{h.Stream, h.Seq, hex.EncodeToString(h.Hash[:])}); err != nil {
			return err
		}
	}
	return nil
}

// ReadHeads reads what WriteHeads wrote. Objects without a stream are passed
// over, so that heads may stand among other lines.
func ReadHeads(r io.Reader) ([]store.Head, error) {
	var heads []store.Head
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	n := 0
	bad := func(err error) error {
		return belay.Errorf(belay.CodeUsage, "this is no line of a file of heads").At(fmt.Sprintf("line %d", n)).
			WithHint("belay verify writes such a file").Wrap(err)
	}
	for lines.Scan() {
		n++
		var l headLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, bad(err)
		}
		if l.Stream == "" {
			continue
		}
		h := store.Head{Stream: l.Stream, Seq: l.Seq}
		raw, err := hex.DecodeString(l.Hash)
		if err != nil || len(raw) != len(h.Hash) || l.Seq < 1 {
			return nil, bad(err)
		}
		copy(h.Hash[:], raw)
		heads = append(heads, h)
	}
	if err := lines.Err(); err != nil {
		n++
		return nil, bad(err)
	}
	return heads, nil
}

// against looks for heads that were kept elsewhere. Whoever changes a store
// can make its chains fit; heads that were kept elsewhere show it.
func (v *verification) against(ctx context.Context) error {
	for _, want := range v.o.Against {
		var length int64
		var hash []byte
		err := v.each(ctx, "SELECT s.seq, e.hash FROM streams s LEFT JOIN events e ON e.stream=s.id AND e.seq=? WHERE s.name=?",
			[]any{want.Seq, string(want.Stream)}, func(rows *sql.Rows) error { return rows.Scan(&length, &hash) })
		if err != nil {
			return err
		}
		v.Compared++
		if gone := v.gone(&want); length == 0 && gone != "" {
			v.Deleted = append(v.Deleted, Problem{Place: string(want.Stream), What: gone})
			continue
		}
		what := ""
		switch {
		case length == 0:
			what = fmt.Sprintf("it had %d facts when the heads were kept, and is gone", want.Seq)
		case length < want.Seq:
			what = fmt.Sprintf("it had %d facts when the heads were kept, now %d", want.Seq, length)
		case string(hash) != string(want.Hash[:]):
			what = fmt.Sprintf("up to fact %d it isn't what it was when the heads were kept", want.Seq)
		default:
			continue
		}
		v.Differences = append(v.Differences, Problem{Place: string(want.Stream), What: what})
	}
	return nil
}
