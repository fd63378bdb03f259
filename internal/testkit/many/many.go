// Command many makes long sessions, and many of them, of one that was really run: for tests
// of what is to cost the same however much there is.
//
//	many STORE SESSION long N          until it has N facts
//	many STORE SESSION copies N        N sessions like it
//	many STORE SESSION live RATE TIME  RATE facts a second, for TIME
//
// It prints how many facts, or sessions, there are then, or came.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
)

func main() {
	n, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(n)
}

func run(ctx context.Context, args []string) (n int, err error) {
	if len(args) < 4 {
		return 0, errors.New("many STORE SESSION long|copies|live N [TIME]")
	}
	if n, err = strconv.Atoi(args[3]); err != nil {
		return 0, err
	}
	if args[2] == "copies" {
		return n, copies(ctx, args[0], args[1], n)
	}
	s, err := open(ctx, args[0], args[1])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if args[2] == "long" {
		_, err = s.add(ctx, n-s.facts)
		return s.facts, err
	}
	lasts, err := time.ParseDuration(args[4])
	came := 0
	for began := time.Now(); err == nil && time.Since(began) < lasts; time.Sleep(100 * time.Millisecond) {
		var added int
		added, err = s.add(ctx, int(float64(n)*time.Since(began).Seconds())-came)
		came += added
	}
	return came, err
}

// session is one that is made longer by its first turn, again and again, each time
// with other ids of what is in it.
type session struct {
	facts int // that it has

	db      *sqlite.DB
	id      belay.SessionID
	stream  belay.StreamID
	epoch   int64
	seq     int64
	decider core.Decider
	version string
	turn    [][]byte // the facts of the turn, as JSON
	ids     []string // of what is in it
	round   int
}

// open takes over a session with one thread, whose turns have ended.
func open(ctx context.Context, path, id string) (_ *session, err error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	s := &session{db: db, id: belay.SessionID(id)}
	if err = s.read(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *session) read(ctx context.Context) error {
	turns := 0
	for rec, err := range s.db.Window(ctx, store.Window{Session: s.id}) {
		if err != nil {
			return err
		}
		s.facts++
		e := rec.Event
		if e.Type() == "turn.submitted" {
			turns++
		}
		if e.Stream.Kind() != belay.KindThread || turns != 1 {
			continue
		}
		s.stream = e.Stream
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		s.turn = append(s.turn, raw)
		i := e.IDs
		s.ids = known(s.ids, string(i.Turn), string(i.Run), string(i.Step), string(i.Call), string(i.Action), string(i.Process))
	}
	if len(s.turn) == 0 {
		return fmt.Errorf("session %s has no turn", s.id)
	}
	var err error
	if s.epoch, err = s.db.Claim(ctx, s.id, store.ThisProcess(), time.Hour); err != nil {
		return err
	}
	if s.decider, s.seq, _, err = engine.Load(ctx, s.db, s.stream); err != nil {
		return err
	}
	s.round = 1 + int(s.seq)/len(s.turn) // ids of other rounds were given
	_, s.version, err = engine.NewDecider(s.stream)
	return err
}

// known adds ids to those that are known.
func known(all []string, more ...string) []string {
	for _, id := range more {
		if id != "" && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// batch is how many facts are appended at once.
const batch = 450

// add appends turns until the session has so many facts more, and returns how many.
func (s *session) add(ctx context.Context, facts int) (added int, err error) {
	var events []event.Envelope
	for added < facts {
		s.round++
		swap := make([]string, 0, 2*len(s.ids))
		for _, id := range s.ids {
			swap = append(swap, id, fmt.Sprintf("%s-%d", id, s.round))
		}
		other := strings.NewReplacer(swap...)
		for _, raw := range s.turn {
			var e event.Envelope
			if err := json.Unmarshal([]byte(other.Replace(string(raw))), &e); err != nil {
				return added, err
			}
			s.seq++
			e.Stream, e.Seq, e.Time = s.stream, s.seq, time.Now().UTC().Truncate(time.Microsecond)
			s.decider.Apply(e)
			events = append(events, e)
		}
		added += len(s.turn)
		if len(events) >= batch || added >= facts {
			if err := s.append(ctx, events); err != nil {
				return added, err
			}
			events = nil
		}
	}
	return added, nil
}

func (s *session) append(ctx context.Context, events []event.Envelope) error {
	state, err := s.decider.Save()
	if err != nil {
		return err
	}
	_, err = s.db.Append(ctx, store.Batch{Session: s.id, Stream: s.stream, After: s.seq - int64(len(events)), Epoch: s.epoch, Events: events,
		State: &store.State{Seq: s.seq, Version: s.version, Data: state}})
	if err == nil {
		s.facts += len(events)
	}
	return err
}

// close gives the session back.
func (s *session) close(ctx context.Context) error {
	return errors.Join(s.db.Release(ctx, s.id, s.epoch), s.db.Close())
}

// copies makes n sessions that are what a session is, with other ids. Nothing drives them.
func copies(ctx context.Context, path, id string, n int) (err error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var facts [][]byte
	ids := []string{id}
	for rec, err := range db.Window(ctx, store.Window{Session: belay.SessionID(id)}) {
		if err != nil {
			return err
		}
		raw, err := json.Marshal(rec.Event)
		if err != nil {
			return err
		}
		facts = append(facts, raw)
		i := rec.Event.IDs
		ids = known(ids, string(i.Thread), string(i.Turn), string(i.Task), string(i.Run), string(i.Step), string(i.Call), string(i.Action), string(i.Process))
	}
	for i := range n {
		if err := clone(ctx, db, facts, ids, i); err != nil {
			return err
		}
	}
	return nil
}

// clone makes the session number i of facts.
func clone(ctx context.Context, db *sqlite.DB, facts [][]byte, ids []string, i int) error {
	swap := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		swap = append(swap, id, fmt.Sprintf("%s-%d", id, i))
	}
	other := strings.NewReplacer(swap...)
	id := belay.SessionID(other.Replace(ids[0]))
	var batches []store.Batch // of each stream one
	for _, raw := range facts {
		e, err := placed([]byte(other.Replace(string(raw))))
		if err != nil {
			return err
		}
		at := slices.IndexFunc(batches, func(b store.Batch) bool { return b.Stream == e.Stream })
		if at < 0 {
			at = len(batches)
			batches = append(batches, store.Batch{Session: id, Stream: e.Stream})
		}
		b := &batches[at]
		e.Seq = int64(len(b.Events)) + 1
		b.Events = append(b.Events, e)
	}
	epoch, err := db.Claim(ctx, id, store.ThisProcess(), time.Minute)
	if err != nil {
		return err
	}
	for i := range batches {
		batches[i].Epoch = epoch
	}
	_, err = db.Append(ctx, batches...)
	return errors.Join(err, db.Release(ctx, id, epoch))
}

// placed is a fact whose stream has another name than when it was recorded.
func placed(raw []byte) (e event.Envelope, err error) {
	var all map[string]json.RawMessage
	var is struct {
		Stream   belay.StreamID `json:"stream"`
		Sequence int64          `json:"sequence"`
	}
	if err = json.Unmarshal(raw, &all); err == nil {
		err = json.Unmarshal(raw, &is)
	}
	if err == nil {
		e.Stream, e.Seq = is.Stream, is.Sequence
		all["eventId"], err = json.Marshal(e.ID())
	}
	if err == nil {
		raw, err = json.Marshal(all)
	}
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	return e, err
}
