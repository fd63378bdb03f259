package server

import (
	"net/http"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
)

// A path is what it says: nobody is sent elsewhere, with a page for people.
func TestAPathIsNotTidiedUp(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	for path, status := range map[string]int{
		"/v1/sessions": http.StatusOK, "/v1/sessions?limit=1": http.StatusOK,
		"//v1/sessions": http.StatusNotFound, "/v1//sessions": http.StatusNotFound, "/v1/./sessions": http.StatusNotFound,
		"/v1/x/../sessions": http.StatusNotFound, "/v1/sessions/": http.StatusNotFound, "/v1/nothing": http.StatusNotFound,
	} {
		a := r.do("GET", path, owner, "")
		if a.status != status || status == http.StatusNotFound && (a.Code != belay.CodeNotFound || a.Hint == "") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}
