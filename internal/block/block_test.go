package block_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/testkit/golden"
)

var t0 = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// play is a scenario: facts and what flows go in, blocks come out.
type play struct {
	t     *testing.T
	fold  block.Fold
	kept  map[belay.Digest]string
	names map[string]belay.Ref
	seq   int64
	out   strings.Builder
	all   []block.Block
}

// line takes a line of a scenario:
//
//	NAME = "TEXT"                     keeps a content, which "$NAME" names in a fact
//	ID… TYPE JSON                     is a fact with these ids
//	flow ID… KIND ATTEMPT OFFSET TEXT is what flows
//	wait SECONDS                      lets time pass
//	show                              shows the blocks so far
func (p *play) line(text string) error {
	words := strings.Fields(text)
	switch {
	case len(words) == 0 || text[0] == '#':
		return nil
	case words[0] == "show":
		p.show()
		return nil
	case words[0] == "wait":
		n, err := strconv.Atoi(words[1])
		p.seq += int64(n)
		return err
	case len(words) > 2 && words[1] == "=":
		said, err := strconv.Unquote(strings.TrimSpace(text[strings.IndexByte(text, '=')+1:]))
		ref := belay.Ref{Digest: belay.DigestOf([]byte(said)), Size: int64(len(said))}
		p.kept[ref.Digest], p.names[words[0]] = said, ref
		return err
	}
	ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1"}
	flow := words[0] == "flow"
	if flow {
		words = words[1:]
	}
	for ; len(words) > 0; words = words[1:] {
		switch kind, _, _ := strings.Cut(words[0], "_"); kind {
		case "turn":
			ids.Turn = belay.TurnID(words[0])
		case "step":
			ids.Step = belay.StepID(words[0])
		case "call":
			ids.Call = belay.CallID(words[0])
		case "act":
			ids.Action = belay.ActionID(words[0])
		case "proc":
			ids.Process = belay.ProcessID(words[0])
		default:
			kind = ""
		}
		if !strings.Contains(words[0], "_") || strings.Contains(words[0], ".") {
			break
		}
	}
	rest := text[strings.Index(text, words[0]):]
	if flow {
		said, err := strconv.Unquote(strings.SplitN(rest, " ", 4)[3])
		attempt, _ := strconv.Atoi(words[1])
		offset, _ := strconv.ParseInt(words[2], 10, 64)
		p.fold.Flow(event.Delta{Stream: ids.Thread.Stream(), IDs: ids, Kind: words[0], Attempt: attempt, Offset: offset, Text: said})
		return err
	}
	name, raw, _ := strings.Cut(rest, " ")
	for n, ref := range p.names {
		b, _ := json.Marshal(ref)
		raw = strings.ReplaceAll(raw, `"$`+n+`"`, string(b))
	}
	data, err := event.Decode(name, 0, []byte(raw))
	if err != nil {
		return err
	}
	p.seq++
	p.fold.Apply(event.Envelope{Stream: ids.Thread.Stream(), Seq: p.seq, Time: t0.Add(time.Duration(p.seq) * time.Second), IDs: ids, Data: data})
	return nil
}

func (p *play) show() {
	for _, b := range p.fold.Take() {
		fmt.Fprintf(&p.out, "%s %s\n", b.Kind, b.ID)
		p.all = append(p.all, b)
		if !b.Done {
			p.t.Errorf("%s %s was taken and isn't done", b.Kind, b.ID)
		}
	}
	for _, b := range p.fold.Live() {
		fmt.Fprintf(&p.out, "%s %s, not done\n", b.Kind, b.ID)
		p.lines(b, block.Options{Width: 80, UTF8: true, Now: t0.Add(time.Duration(p.seq) * time.Second)})
	}
	p.out.WriteString("--\n")
}

func (p *play) lines(b block.Block, o block.Options) {
	for _, l := range block.Render(b, o) {
		if strings.ContainsAny(l, "\n\r\t\a\b") {
			p.t.Errorf("a line has control characters: %q", l)
		}
		fmt.Fprintf(&p.out, "%s\n", strings.ReplaceAll(l, "\x1b", "␛"))
	}
}

func (p *play) load(r belay.Ref) ([]byte, error) {
	text, ok := p.kept[r.Digest]
	if !ok {
		return nil, errors.New("not kept")
	}
	return []byte(text), nil
}

// Facts become blocks, and blocks lines, as the scenarios in testdata say.
func TestScenarios(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("there are no scenarios")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			p := &play{t: t, kept: map[belay.Digest]string{}, names: map[string]belay.Ref{}}
			p.fold.Load = p.load
			for s := bufio.NewScanner(f); s.Scan(); {
				if err := p.line(s.Text()); err != nil {
					t.Fatalf("%s: %v", s.Text(), err)
				}
			}
			p.show()
			for _, o := range []struct {
				name string
				block.Options
			}{
				{"80 columns", block.Options{Width: 80, UTF8: true}},
				{"40 columns", block.Options{Width: 40, UTF8: true}},
				{"120 columns, verbose", block.Options{Width: 120, UTF8: true, Verbose: true}},
				{"80 columns, colours", block.Options{Width: 80, UTF8: true, Colour: true}},
				{"ASCII, no width", block.Options{}},
				{"screen reader", block.Options{Width: 80, ScreenReader: true}},
			} {
				fmt.Fprintf(&p.out, "\n== %s ==\n", o.name)
				o.Me = "user:ann"
				for _, b := range p.all {
					p.lines(b, o.Options)
				}
			}
			golden.Compare(t, strings.TrimSuffix(file, ".txt")+".golden", p.out.String())
		})
	}
}
