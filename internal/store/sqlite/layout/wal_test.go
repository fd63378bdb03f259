package layout

import (
	"bytes"
	"testing"
)

func FuzzLog(f *testing.F) {
	f.Add([]byte("7\x7f\x06\x82\x00\x2d\xe2\x18\x00\x00\x02\x00\x00\x00\x00\x00saltsalt\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := ScanLog(bytes.NewReader(log), "log")
		if err != nil {
			t.Fatal(err)
		}
		if len(log) > 0 && len(log) < HeaderBytes && len(r.Problems) == 0 {
			t.Fatal("half a header is no problem")
		}
	})
}
