package script

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/event/eventtest"
)

// valid is the command valid SESSION [TYPE…]: it reads the session's snapshot and all of
// its facts from the server at URL and holds them against both levels of the standard's
// schemas. There must be a fact of each type.
func valid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: valid SESSION [TYPE…]")
	}
	if err := eventtest.InvalidSnapshot(fetched(ts, "/v1/sessions/"+args[0]+"/snapshot")); err != nil {
		ts.Fatalf("the snapshot: %v", err)
	}
	types := map[string]bool{}
	for query, n := "first=1000", 0; ; query = "behind=" + query + "&limit=1000" {
		var page struct {
			Events    []json.RawMessage
			Newer     string
			MoreNewer bool
		}
		ts.Check(json.Unmarshal(fetched(ts, "/v1/sessions/"+args[0]+"/events?"+query), &page))
		for _, raw := range page.Events {
			if err := eventtest.Invalid(raw); err != nil {
				ts.Fatalf("%v\n%s", err, raw)
			}
			var e struct{ Type string }
			ts.Check(json.Unmarshal(raw, &e))
			types[e.Type] = true
			n++
		}
		if query = url.QueryEscape(page.Newer); !page.MoreNewer {
			ts.Logf("%d facts of %d types and a snapshot are valid", n, len(types))
			break
		}
	}
	for _, want := range args[1:] {
		if !types[want] {
			ts.Fatalf("there is no %s", want)
		}
	}
}

// fetched is what the server at URL answers.
func fetched(ts *testscript.TestScript, path string) []byte {
	status, body, err := asked(http.MethodGet, ts.Getenv("URL")+path, ts.Getenv("TOKEN"), nil)
	ts.Check(err)
	if status != http.StatusOK {
		ts.Fatalf("GET %s: %d %s", path, status, body)
	}
	return []byte(body)
}
