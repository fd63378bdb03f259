package effect

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/tokens"
)

// Bounds of what is recorded of the searches that a vendor made within an answer.
const (
	maxSearches    = 16
	maxSearchQuery = 200 // bytes of what was searched for
	maxSearchPage  = 500 // bytes of an address with its title
	inlineSearches = 2 << 10
)

// searched is what the model's vendor searched the web for, and what it found.
func (a *answer) searched(ctx context.Context) (out []event.ModelSearch, err error) {
	budget := inlineSearches
	for _, s := range a.searches[:min(len(a.searches), maxSearches)] {
		m := event.ModelSearch{Query: a.said(s.Query, maxSearchQuery), Found: len(s.Found), Problem: a.said(s.Problem, maxSearchQuery)}
		var b strings.Builder
		for i, p := range s.Found {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(a.said(p.URL+" "+p.Title, maxSearchPage))
		}
		m.Pages = belay.Content{Text: b.String(), Tokens: tokens.Text(b.String())}
		if size := event.TextLen(m.Pages.Text); size <= budget {
			budget -= size
		} else if err := a.movePages(ctx, &m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// movePages moves what a search found to a blob.
func (a *answer) movePages(ctx context.Context, m *event.ModelSearch) error {
	ref, err := a.v.e.c.Store.Put(ctx, []byte(m.Pages.Text), "text/plain")
	m.Pages.Text, m.Pages.Ref = "", &ref
	return err
}

// shortenSearches makes the searches of an answer that doesn't fit shorter: pages go to
// blobs, then the last search goes.
func (a *answer) shortenSearches(ctx context.Context, p *event.ModelCompleted) error {
	for i := range p.Searches {
		if p.Searches[i].Pages.Text != "" {
			return a.movePages(ctx, &p.Searches[i])
		}
	}
	p.Searches = p.Searches[:len(p.Searches)-1]
	return nil
}

// said is a vendor's text on one line, without secrets.
func (a *answer) said(text string, most int) string {
	return event.CutText(a.v.e.c.Secrets.String(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")), most)
}
