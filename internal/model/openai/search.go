package openai

import (
	"cmp"

	"github.com/belay-run/belay/internal/model"
)

// searchAction is what the vendor's own search did. Source:
// https://platform.openai.com/docs/guides/tools-web-search, November 2026.
type searchAction struct {
	Type    string   `json:"type"` // search, open_page, find_in_page
	Query   string   `json:"query"`
	Queries []string `json:"queries"`
	URL     string   `json:"url"`
	Pattern string   `json:"pattern"`
	Sources []struct {
		URL  string `json:"url"`
		Name string `json:"name"` // of one that is no page
	} `json:"sources"`
}

// searched takes a search that has ended. One without an action did nothing.
func (d *decoder) searched(it *item, o *outputItem) {
	if o.Action == nil {
		return
	}
	d.Hold(len(o.raw))
	it.encoding = o.raw
	a := o.Action
	s := model.Search{Query: cmp.Or(a.Query, a.Pattern, a.URL)}
	if s.Query == "" && len(a.Queries) > 0 {
		s.Query = a.Queries[0]
	}
	if o.Status == "failed" {
		s.Problem = o.Status
	}
	for _, f := range a.Sources {
		s.Found = append(s.Found, model.Page{URL: cmp.Or(f.URL, f.Name)})
	}
	if a.URL != "" {
		s.Found = append(s.Found, model.Page{URL: a.URL})
	}
	d.Say(model.Chunk{Search: &s})
}
