// Package needs lets a test declare what it can't run without and the machine
// may lack. A missing facility skips the test with "needs: NAME"; when
// BELAY_REQUIRE lists the name the test fails instead, so that nothing is passed
// over in silence where everything should be there.
package needs

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Facility skips or fails the test unless ok.
func Facility(t testing.TB, name string, ok bool, why string) {
	t.Helper()
	if ok {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("BELAY_REQUIRE"), ","), name) {
		t.Fatalf("needs: %s (%s), and BELAY_REQUIRE asks for it", name, why)
	}
	t.Skipf("needs: %s (%s)", name, why)
}

// Program is Facility for a program on the PATH.
func Program(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	Facility(t, name, err == nil, "no such program on the PATH")
}

// Root is Facility for being the superuser.
func Root(t testing.TB) {
	t.Helper()
	Facility(t, "root", os.Geteuid() == 0, "not the superuser")
}
