package store

import (
	"reflect"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

const (
	testSession belay.SessionID = "sess_0190a5de-0000-7000-8000-00000000000a"
	testThread  belay.StreamID  = "thread/thr_0190a5de-0000-7000-8000-00000000000b"
)

func TestIDsTakeNoMoreThanTheyMust(t *testing.T) {
	step := belay.StepID(belay.DeriveID(belay.PrefixStep, testThread, 1, 0))
	for _, c := range []struct {
		what   string
		stream belay.StreamID
		ids    belay.IDs
		size   int
	}{
		{"none", testThread, belay.IDs{}, 1},
		{"what the stream says", testThread, belay.IDs{Session: testSession, Thread: belay.ThreadID(testThread.ID())}, 1},
		{"a task in its stream", "task/t1", belay.IDs{Session: testSession, Task: "t1"}, 1},
		{"a step", testThread, belay.IDs{Session: testSession, Step: step}, 18},
		{"a caller's own id", testThread, belay.IDs{Turn: "mine"}, 7},
		{"another thread", "task/t1", belay.IDs{Thread: "thr_x"}, 10},
	} {
		b := appendIDs(nil, testSession, c.stream, &c.ids)
		if len(b) != c.size {
			t.Errorf("%s: %d bytes, want %d", c.what, len(b), c.size)
		}
		if got, err := readIDs(b, testSession, c.stream); err != nil || got != c.ids {
			t.Errorf("%s: got %+v, %v", c.what, got, err)
		}
	}
}

func TestEveryIdentityHasItsField(t *testing.T) {
	v := reflect.ValueOf(&belay.IDs{}).Elem()
	for i := range v.NumField() {
		v.SetZero()
		name := v.Type().Field(i).Name
		v.Field(i).SetString("value-of-" + name)
		ids := v.Interface().(belay.IDs)
		if got, err := readIDs(appendIDs(nil, testSession, testThread, &ids), testSession, testThread); err != nil || got != ids {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func FuzzIDsComeBackAsTheyWere(f *testing.F) {
	id := belay.NewID(belay.PrefixTurn)
	f.Add("sess_a", "thread/thr_a", id, strings.ToUpper(id), "thr_a", "")
	f.Add("", "", "", "turn_", "_0190a5de-0000-7000-8000-00000000000a", "x_0190a5de-0000-7000-8000-00000000000a")
	f.Add("s", "task/", "turn_0190a5de_0000-7000-8000-00000000000a", "task_0190a5de-0000-7000-8000-00000000000g", "s", "\x00")
	f.Fuzz(func(t *testing.T, session, stream, a, b, c, d string) {
		ids := belay.IDs{Session: belay.SessionID(c), Turn: belay.TurnID(a), Step: belay.StepID(b), Thread: belay.ThreadID(c),
			Task: belay.TaskID(d), Request: belay.CommandID(d), Channel: a, Output: belay.OutputID(b)}
		packed := appendIDs(nil, belay.SessionID(session), belay.StreamID(stream), &ids)
		got, err := readIDs(packed, belay.SessionID(session), belay.StreamID(stream))
		if err != nil || got != ids {
			t.Fatalf("%x: got %+v, %v, want %+v", packed, got, err, ids)
		}
	})
}

func FuzzStoredBytesNeverBreakTheReader(f *testing.F) {
	ids := belay.IDs{Turn: belay.TurnID(belay.NewID(belay.PrefixTurn)), Channel: "c"}
	f.Add(appendIDs(nil, testSession, testThread, &ids))
	f.Add(appendRefs(nil, map[string]belay.Ref{"a": {Digest: belay.DigestOf(nil), Size: 3, Media: "m"}, "b": {}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if ids, err := readIDs(b, testSession, testThread); err == nil {
			again, err := readIDs(appendIDs(nil, testSession, testThread, &ids), testSession, testThread)
			if err != nil || again != ids {
				t.Fatalf("got %+v, %v, want %+v", again, err, ids)
			}
		}
		if refs, err := readRefs(b); err == nil {
			again, err := readRefs(appendRefs(nil, refs))
			if err != nil || !reflect.DeepEqual(again, refs) {
				t.Fatalf("got %+v, %v, want %+v", again, err, refs)
			}
		}
	})
}
