package session

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Bounds of what lists show of a session.
const (
	maxTitle = 200 // characters
	maxTags  = 32
	maxTag   = 64 // bytes
)

// label changes title, tags and whether the session is archived. What is so
// already is no fact.
func (d *Decider) label(c belay.LabelSession) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session")
	}
	if n := utf8.RuneCountInString(c.Title); n > maxTitle {
		return nil, nil, belay.Errorf(belay.CodeTooLarge, "the title has %d characters; at most %d are taken", n, maxTitle)
	}
	var p event.SessionUpdated
	if title := strings.TrimSpace(c.Title); title != s.Title {
		p.Title = title
	}
	for _, tag := range c.Tag {
		if err := checkTag(tag); err != nil {
			return nil, nil, err
		}
		if !slices.Contains(s.Tags, tag) && !slices.Contains(p.Tag, tag) {
			p.Tag = append(p.Tag, tag)
		}
	}
	for _, tag := range c.Untag {
		if slices.Contains(s.Tags, tag) && !slices.Contains(p.Untag, tag) {
			p.Untag = append(p.Untag, tag)
		}
	}
	if n := len(tagged(s.Tags, p)); n > maxTags {
		return nil, nil, belay.Errorf(belay.CodeTooLarge, "the session would have %d tags; it can have %d", n, maxTags)
	}
	if c.Archived != nil && *c.Archived != s.Archived {
		p.Archived = c.Archived
	}
	if p.Title == "" && p.Tag == nil && p.Untag == nil && p.Archived == nil {
		return nil, nil, nil
	}
	return []core.Fact{{IDs: s.ids(), Data: p}}, nil, nil
}

// checkTag reports whether a text can be a tag: one word.
func checkTag(tag string) error {
	if tag == "" || len(tag) > maxTag || strings.HasPrefix(tag, "-") ||
		strings.ContainsFunc(tag, func(r rune) bool { return r <= ' ' || r == ',' || r == '#' || r == 0x7f || r == utf8.RuneError }) {
		return belay.Errorf(belay.CodeUsage, "%q can't be a tag", tag).WithHint("a tag is one word of at most %d bytes, without , and #", maxTag)
	}
	return nil
}

// tagged are a session's tags after a fact, sorted.
func tagged(tags []string, p event.SessionUpdated) []string {
	if p.Tag == nil && p.Untag == nil {
		return tags
	}
	out := slices.Concat(tags, p.Tag)
	out = slices.DeleteFunc(out, func(t string) bool { return slices.Contains(p.Untag, t) })
	slices.Sort(out)
	return slices.Compact(out)
}
