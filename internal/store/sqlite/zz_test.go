package sqlite
import "testing"
func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	db, err := Open(b.Context(), dir, Options{})
	if err != nil { b.Fatal(err) }
	m, err := newMix(b.Context(), db, 5)
	if err != nil { b.Fatal(err) }
	if err := m.steps(b.Context(), 200); err != nil { b.Fatal(err) }
	db.Close()
	for b.Loop() {
		r, err := Verify(b.Context(), dir, VerifyOptions{})
		if err != nil || !r.OK() { b.Fatal(err, r.Problems) }
	}
}
