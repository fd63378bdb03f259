package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTheFirstRequestIsAnnouncedWhileItIsAnswered has a server that answers when
// it was announced that the request is written, and not before.
func TestTheFirstRequestIsAnnouncedWhileItIsAnswered(t *testing.T) {
	announced := make(chan struct{})
	var times atomic.Int32
	var m models
	underway := func() {
		if times.Add(1) == 1 {
			close(announced)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // what comes doesn't matter
		select {
		case <-announced:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	for _, c := range []*http.Client{m.announces(s.Client(), underway), m.announces(&http.Client{Transport: &http.Transport{}}, underway)} {
		for range 2 {
			resp, err := c.Post(s.URL, "text/plain", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		c.CloseIdleConnections()
	}
	if n := times.Load(); n != 1 {
		t.Errorf("%d requests were announced; only the first of all is", n)
	}
	if c := new(http.Client); (&models{}).announces(c, nil).Transport != nil {
		t.Error("a client was changed though nobody listens")
	}
}
