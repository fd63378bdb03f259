package cli

import (
	"net/http"
	"net/http/httptrace"
	"sync"
)

// announces makes a client say when the first request of all is written: what
// needn't be done before it is done then, while the model answers.
func (m *models) announces(c *http.Client, underway func()) *http.Client {
	if underway != nil {
		c.Transport = &announcing{c.Transport, &m.first, underway}
	}
	return c
}

type announcing struct {
	http.RoundTripper
	first    *sync.Once
	underway func()
}

func (t *announcing) RoundTrip(r *http.Request) (*http.Response, error) {
	t.first.Do(func() {
		var written sync.Once // a request that is sent again is written twice
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { written.Do(t.underway) },
		}))
	})
	return t.RoundTripper.RoundTrip(r)
}
