package event

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// starBorn is the third version of a type that is in no table: the first called
// the mass weight, the second had no name.
type starBorn struct {
	fact
	Mass int    `json:"mass"`
	Name string `json:"name"`
}

var errTooOld = errors.New("too old")

func star(opts ...func(*Type)) Type {
	return of[starBorn]("star.born", "", opts...)
}

func rename(raw []byte) ([]byte, error) {
	return bytes.Replace(raw, []byte(`"weight"`), []byte(`"mass"`), 1), nil
}

func christen(raw []byte) ([]byte, error) {
	return bytes.Replace(raw, []byte(`{`), []byte(`{"name":"none",`), 1), nil
}

func TestOldVersionsAreLifted(t *testing.T) {
	ty := star(upcast(1, rename), upcast(2, christen))
	if ty.Version != 3 {
		t.Fatalf("two upcasters make version %d, want 3", ty.Version)
	}
	tests := []struct {
		version int
		raw     string
		want    starBorn
	}{
		{0, `{"weight":4}`, starBorn{Mass: 4, Name: "none"}},
		{1, `{"weight":4}`, starBorn{Mass: 4, Name: "none"}},
		{2, `{"mass":4}`, starBorn{Mass: 4, Name: "none"}},
		{3, `{"mass":4,"name":"Sol"}`, starBorn{Mass: 4, Name: "Sol"}},
	}
	for _, tt := range tests {
		got, err := ty.read(tt.version, []byte(tt.raw))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("version %d: got %+v, %v; want %+v", tt.version, got, err, tt.want)
		}
	}
}

func TestLiftingLeavesTheRecordAlone(t *testing.T) {
	ty := star(upcast(1, rename))
	raw := []byte(`{"weight":4}`)
	if _, err := ty.read(1, raw); err != nil || string(raw) != `{"weight":4}` {
		t.Errorf("after reading: %s, %v", raw, err)
	}
}

func TestAVersionThatCantBeLiftedIsAnError(t *testing.T) {
	gap := star(upcast(2, christen))
	if _, err := gap.read(1, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "version 1 can no longer be read") {
		t.Errorf("over a gap: %v", err)
	}
	broken := star(upcast(1, func([]byte) ([]byte, error) { return nil, errTooOld }))
	if _, err := broken.read(1, []byte(`{}`)); !errors.Is(err, errTooOld) {
		t.Errorf("the upcaster's error is lost: %v", err)
	}
}

// Guarantee: O13.
func TestTheTableReadsEveryVersionItHad(t *testing.T) {
	for _, ty := range table {
		for v := 1; v < ty.Version; v++ {
			if ty.up[v] == nil {
				t.Errorf("%s: version %d has no upcaster", ty.Name, v)
			}
		}
	}
}
