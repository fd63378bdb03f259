package transcript

import (
	"encoding/json"
	"slices"
	"strings"
)

// Claude Code writes a line for each thing that happens: what a person said,
// each block of an answer, each result, and much that no model is shown. Lines
// name the line before them, so going back makes branches; the last line is on
// the branch that counts. Lines that name none are in their order. A compaction
// begins a new tree with a summary.

// claudeLine is a line as far as its place is concerned.
type claudeLine struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	UUID        string `json:"uuid"`
	Parent      before `json:"parentUuid"`
	Sidechain   bool   `json:"isSidechain"`
	Meta        bool   `json:"isMeta"`
	Compact     bool   `json:"isCompactSummary"`
	APIError    bool   `json:"isApiErrorMessage"`
	Session     string `json:"sessionId"`
	Cwd         string `json:"cwd"`
	Time        when   `json:"timestamp"`
	Summary     string `json:"summary"`
	CustomTitle string `json:"customTitle"`
	AITitle     string `json:"aiTitle"`
	Message     struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// claudeNode is what is remembered of a line.
type claudeNode struct {
	span
	link
	role     string // user or assistant; empty: a link between others
	message  string // the answer that it is a piece of
	calls    []string
	results  []string
	boundary bool // a conversation begins anew here
	side     bool // of a sub-agent
	on       bool // it counts
}

func (c *Conversation) openClaude() error {
	c.About.Format = string(Claude)
	var nodes []claudeNode
	err := c.file.each(func(at span, raw []byte) error {
		var l claudeLine
		if err := decode(raw, &l); err != nil {
			c.left.add("line that can't be read", at.number)
			return nil
		}
		if n, ok := c.claudeNode(at, &l); ok {
			nodes = append(nodes, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if nodes = c.withoutSub(nodes); !c.chooseClaude(nodes) {
		return bad(0, "it has no conversation")
	}
	var chosen []span
	for _, n := range nodes {
		if n.on && n.role != "" {
			chosen = append(chosen, n.span)
		}
	}
	plays(c, chosen, claudeSaid)
	return nil
}

// claudeNode looks at a line for the first time.
func (c *Conversation) claudeNode(at span, l *claudeLine) (n claudeNode, ok bool) {
	if l.Session != "" {
		c.About.Session = l.Session
	}
	if l.Cwd != "" && !l.Sidechain {
		c.About.Workspace = l.Cwd
	}
	for _, title := range []string{l.Summary, l.AITitle, l.CustomTitle} {
		if title != "" && l.Type != "user" && l.Type != "assistant" {
			c.About.Title = title
		}
	}
	n = claudeNode{span: at, link: link{l.UUID, l.Parent}, side: l.Sidechain}
	switch {
	case l.Type == "summary" || l.Type == "custom-title" || l.Type == "ai-title":
		return n, false
	case l.Type == "assistant" && l.APIError:
		c.left.add("error of a provider", at.number)
	case l.Type == "user" || l.Type == "assistant":
		n.role, n.boundary = l.Type, l.Compact && l.Parent.id == ""
		if l.Type == "assistant" && l.Message.Model != "" && l.Message.Model != "<synthetic>" {
			c.About.Model = l.Message.Model
		}
		n.message = l.Message.ID
		for _, b := range blocks(l.Message.Content) {
			switch {
			case l.Type == "assistant" && b.Type == "tool_use":
				n.calls = append(n.calls, b.ID)
			case l.Type == "user" && b.Type == "tool_result":
				n.results = append(n.results, b.Call)
			}
		}
	case l.Type == "system" && l.Subtype == "compact_boundary":
		n.boundary = true
	default:
		c.left.add("line of type "+kind(l.Type), at.number)
	}
	return n, l.UUID != "" || n.role != ""
}

// withoutSub leaves out what sub-agents said, unless the file is a sub-agent's.
func (c *Conversation) withoutSub(nodes []claudeNode) (main []claudeNode) {
	for _, n := range nodes {
		if !n.side {
			main = append(main, n)
		}
	}
	if !slices.ContainsFunc(main, func(n claudeNode) bool { return n.role != "" }) {
		return nodes
	}
	for _, n := range nodes {
		if n.side {
			c.left.add("line of a sub-agent", n.number)
		}
	}
	return main
}

// chooseClaude marks the lines of the branch that the last message is on. Its
// lines name only one of the lines before them, so the other pieces of an
// answer, and the results of its calls, are looked for by their ids.
func (c *Conversation) chooseClaude(nodes []claudeNode) bool {
	links := make([]link, len(nodes))
	leaf := -1
	for i, n := range nodes {
		links[i] = n.link
		if n.role != "" {
			leaf = i
		}
	}
	if leaf < 0 {
		return false
	}
	first, follows := leaf, parents(links)
	for i := leaf; !nodes[i].on; {
		nodes[i].on, first = true, i
		if follows[i] < 0 || nodes[i].boundary {
			if nodes[i].parent.id != "" && !nodes[i].boundary {
				c.left.add("message before this file's first, which it names", nodes[i].number)
			}
			break
		}
		i = follows[i]
	}
	answers, calls := map[string]bool{}, map[string]bool{}
	for _, n := range nodes {
		if n.on && n.role == "assistant" && n.message != "" {
			answers[n.message] = true
		}
	}
	for i := range nodes {
		n := &nodes[i]
		n.on = n.on || n.role == "assistant" && i > first && answers[n.message]
		if n.on {
			for _, id := range n.calls {
				calls[id] = true
			}
		}
	}
	for i := range nodes {
		n := &nodes[i]
		n.on = n.on || slices.ContainsFunc(n.results, func(id string) bool { return calls[id] })
		if n.on || n.role == "" {
			continue
		}
		if i < first && nodes[first].boundary {
			c.left.add("message before the last compaction; its summary is there", n.number)
		} else {
			c.left.add("message of another branch", n.number)
		}
	}
	return true
}

func claudeSaid(b *builder, l *claudeLine, line int) {
	if l.Type == "assistant" {
		b.model(l.Time.Time, l.Message.ID, b.parts(l.Message.Content, line, "text", "tool_use", "thinking", "redacted_thinking"), line)
		return
	}
	parts := b.parts(l.Message.Content, line, "tool_result", "text", "image") // results belong to what was before
	remark := l.Meta || l.Compact || len(parts) > 0 && strings.HasPrefix(parts[0].Text, "[Request interrupted by user")
	b.user(l.Time.Time, parts, !remark)
}

// claudeResult is a result as text: a string, or a list of blocks.
func claudeResult(b *builder, raw json.RawMessage, line int) string {
	if s, ok := text(raw); ok {
		return s
	}
	var out []string
	for _, block := range blocks(raw) {
		switch block.Type {
		case "text":
			out = append(out, block.Text)
		case "image":
			b.left.add("picture in a result", line)
			out = append(out, gonePhoto)
		default:
			b.left.add("block of type "+kind(block.Type)+" in a result", line)
		}
	}
	return strings.Join(out, "\n")
}
