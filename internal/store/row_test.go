package store

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

func testRow(t *testing.T) Row {
	t.Helper()
	r, err := Pack(testSession, testThread, &event.Envelope{Seq: 3, Time: time.UnixMicro(1_700_000_000_000_000), Version: 1, Requires: 2,
		IDs: belay.IDs{Session: testSession, Turn: "t"}, Refs: map[string]belay.Ref{"out": {Digest: belay.DigestOf(nil)}},
		Data: event.ModelDelta{Text: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Guarantee: S12.
func TestTheChainCoversEveryField(t *testing.T) {
	row := testRow(t)
	start := Genesis(testSession, testThread)
	want, _ := Link(start, &row, nil)
	if Genesis("sess_other", testThread) == start || Genesis(testSession, "thread/thr_other") == start {
		t.Error("two streams begin alike")
	}
	if again, _ := Link(start, &row, []byte("used before")); again != want {
		t.Error("the buffer changes the hash")
	}
	if other, _ := Link(want, &row, nil); other == want {
		t.Error("the hash before doesn't count")
	}
	for what, change := range map[string]func(*Row){
		"seq": func(r *Row) { r.Seq++ }, "time": func(r *Row) { r.Time++ }, "type": func(r *Row) { r.Type += "x" },
		"version": func(r *Row) { r.Version++ }, "requires": func(r *Row) { r.Requires++ },
		"ids":  func(r *Row) { r.IDs = append(r.IDs[:len(r.IDs):len(r.IDs)], 0) },
		"refs": func(r *Row) { r.Refs = r.Refs[:len(r.Refs)-1] }, "data": func(r *Row) { r.Data = append(r.Data[:len(r.Data):len(r.Data)], ' ') },
		"a byte that moves": func(r *Row) { r.Type, r.IDs = r.Type+string(r.IDs[:1]), r.IDs[1:] },
	} {
		r := row
		change(&r)
		if hash, _ := Link(start, &r, nil); hash == want {
			t.Errorf("%s doesn't count", what)
		}
	}
}

// TestAFactOfANewerProgramIsNotDamaged: bytes that are whole and say something in a form that
// this program doesn't know are a newer one's.
func TestAFactOfANewerProgramIsNotDamaged(t *testing.T) {
	for data, want := range map[string]belay.Code{
		`{"text":"x","later":{"a":[1]}}`: "",
		`{"text":{"later":"x"}}`:         belay.CodeStoreNewer,
		`{"text":["x"]}`:                 belay.CodeStoreNewer,
		`{"text":"x"`:                    belay.CodeStoreDamaged,
		`"x"`:                            belay.CodeStoreDamaged,
		``:                               belay.CodeStoreDamaged,
	} {
		r := testRow(t)
		r.Data = []byte(data)
		if _, err := r.Unpack("", testSession, testThread); (err == nil) != (want == "") || err != nil && belay.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", data, err, want)
		}
	}
}

// The stored form is a promise to every log that exists: these bytes never change.
func TestTheCanonicalFormIsFixed(t *testing.T) {
	row := testRow(t)
	hash, _ := Link(Genesis(testSession, testThread), &row, nil)
	const want = "sha256:34e796d5d12d12e6ebcb47bf1626be4b4ed08d99426def34ac182b318079780e"
	if got := DigestFrom(hash[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFactThatIsTooLargeIsRefused(t *testing.T) {
	e := event.Envelope{Data: event.ModelDelta{Text: strings.Repeat("x", MaxEvent)}}
	if _, err := Pack(testSession, testThread, &e); belay.CodeOf(err) != belay.CodeTooLarge {
		t.Errorf("got %v", err)
	}
	e.Data = event.ModelDelta{Text: strings.Repeat("x", MaxEvent-200)}
	if _, err := Pack(testSession, testThread, &e); err != nil {
		t.Error(err)
	}
}

func TestAPayloadOfNoTableIsABugThatIsNamed(t *testing.T) {
	if _, err := Pack(testSession, testThread, &event.Envelope{}); belay.CodeOf(err) != belay.CodeInternal {
		t.Errorf("got %v", err)
	}
}

func TestDigestsAreReadInTheirOneForm(t *testing.T) {
	d := belay.DigestOf([]byte("x"))
	raw, ok := RawDigest(d)
	if !ok || DigestFrom(raw[:]) != d {
		t.Errorf("%s comes back as %s", d, DigestFrom(raw[:]))
	}
	for _, bad := range []belay.Digest{"", "sha256:", d[:70], d + "0", belay.Digest(strings.ToUpper(string(d))), "sha512" + d[6:], d[:70] + "g"} {
		if _, ok := RawDigest(bad); ok {
			t.Errorf("%q is read", bad)
		}
	}
}
