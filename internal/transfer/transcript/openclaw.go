package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// OpenClaw and pi write a header and then an entry in each line. In version 1
// entries follow one another; from version 2 on each names the one before it,
// and the last one is on the branch that counts. A compaction names the first
// entry that its summary leaves in place.

// clawEntry is a line.
type clawEntry struct {
	Type      string          `json:"type"`
	Version   int             `json:"version"`
	ID        string          `json:"id"`
	Parent    before          `json:"parentId"`
	Time      when            `json:"timestamp"`
	Cwd       string          `json:"cwd"`
	Provider  string          `json:"provider"`
	Model     string          `json:"modelId"`
	Name      string          `json:"name"`
	Summary   string          `json:"summary"`
	FirstKept string          `json:"firstKeptEntryId"`
	KeptIndex *float64        `json:"firstKeptEntryIndex"`
	Message   clawMessage     `json:"message"`
	Content   json.RawMessage `json:"content"` // of a custom_message
}

// clawMessage is what a message entry holds.
type clawMessage struct {
	Role     string          `json:"role"`
	Content  json.RawMessage `json:"content"`
	Model    string          `json:"model"`
	Stop     string          `json:"stopReason"`
	Error    string          `json:"errorMessage"`
	Call     string          `json:"toolCallId"`
	Tool     string          `json:"toolName"`
	IsError  bool            `json:"isError"`
	Command  string          `json:"command"`
	Output   string          `json:"output"`
	ExitCode *int            `json:"exitCode"`
	Excluded bool            `json:"excludeFromContext"`
	Summary  string          `json:"summary"`
}

// clawNode is what is remembered of an entry.
type clawNode struct {
	span
	link
	kind      string
	kept      string // of a compaction: the first entry that stays
	keptIndex int    // the same in version 1: its place among the lines; 0 is none
}

func (c *Conversation) openOpenClaw() error {
	var nodes []clawNode // with the header as the first, so that places count as they do there
	version := 0
	err := c.file.each(func(at span, raw []byte) error {
		var e clawEntry
		if err := decode(raw, &e); err != nil {
			if len(nodes) == 0 {
				return bad(at.number, "the header can't be read").Wrap(err)
			}
			c.left.add("line that can't be read", at.number)
			return nil
		}
		n := clawNode{span: at, link: link{e.ID, e.Parent}, kind: e.Type, kept: e.FirstKept}
		if e.KeptIndex != nil && *e.KeptIndex >= 1 && *e.KeptIndex < maxLines {
			n.keptIndex = int(*e.KeptIndex)
		}
		if len(nodes) == 0 {
			if e.Type != "session" {
				return bad(at.number, "the first line is no header of a session")
			}
			version = max(e.Version, 1)
			c.About.Session, c.About.Workspace, c.About.Model = e.ID, e.Cwd, e.Model
		}
		c.aboutOpenClaw(&e)
		nodes = append(nodes, n)
		return nil
	})
	if err != nil {
		return err
	}
	c.About.Format = fmt.Sprintf("%s-v%d", OpenClaw, version)
	if len(nodes) < 2 {
		return bad(0, "it has no conversation")
	}
	chosen, err := c.chooseOpenClaw(nodes, version)
	plays(c, chosen, clawEntrySaid)
	return err
}

func (c *Conversation) aboutOpenClaw(e *clawEntry) {
	switch {
	case e.Type == "session_info" && e.Name != "":
		c.About.Title = e.Name
	case e.Type == "model_change" && e.Model != "":
		c.About.Model = e.Model
	case e.Type == "message" && e.Message.Role == "assistant" && e.Message.Model != "":
		c.About.Model = e.Message.Model
	}
}

// chooseOpenClaw is the entries that the model would be given, in order.
func (c *Conversation) chooseOpenClaw(nodes []clawNode, version int) (chosen []span, err error) {
	path := nodes[1:]
	if version > 1 {
		if path, err = c.branch(nodes); err != nil {
			return nil, err
		}
	}
	last := -1
	for i, n := range path {
		if n.kind == "compaction" {
			last = i
		}
	}
	if last < 0 {
		return spans(path), nil
	}
	compaction, from := path[last], last
	for i, n := range path[:last] {
		byID := version > 1 && n.id == compaction.kept && n.id != ""
		byPlace := version == 1 && compaction.keptIndex > 0 && compaction.keptIndex < len(nodes) && n.span == nodes[compaction.keptIndex].span
		if byID || byPlace {
			from = i
		}
	}
	for _, n := range path[:from] {
		if n.kind == "message" || n.kind == "custom_message" || n.kind == "branch_summary" || n.kind == "compaction" {
			c.left.add("message before the last compaction; its summary is there", n.number)
		}
	}
	return spans([]clawNode{compaction}, path[from:last], path[last+1:]), nil
}

// branch walks from the last entry to the first.
func (c *Conversation) branch(nodes []clawNode) ([]clawNode, error) {
	links := make([]link, len(nodes)) // the header is none
	leaf := -1
	for i, n := range nodes[1:] {
		if links[i+1] = n.link; n.id != "" {
			leaf = i + 1
		}
	}
	follows := parents(links)
	if leaf < 0 {
		return nil, bad(nodes[1].number, "the entries have no ids, as they should have in this version")
	}
	on := make([]bool, len(nodes))
	var path []clawNode
	for i := leaf; ; {
		if on[i] {
			return nil, bad(nodes[i].number, "the entry comes before itself")
		}
		on[i] = true
		path = append(path, nodes[i])
		if follows[i] < 1 {
			if nodes[i].parent.id != "" {
				c.left.add("message before this file's first, which it names", nodes[i].number)
			}
			break
		}
		i = follows[i]
	}
	for i, n := range nodes {
		if i > 0 && !on[i] && (n.kind == "message" || n.kind == "custom_message") {
			c.left.add("message of another branch", n.number)
		}
	}
	slices.Reverse(path)
	return path, nil
}

func spans(parts ...[]clawNode) (out []span) {
	for _, n := range slices.Concat(parts...) {
		out = append(out, n.span)
	}
	return out
}

func clawEntrySaid(b *builder, e *clawEntry, line int) {
	switch e.Type {
	case "message":
		clawSaid(b, e, line)
	case "custom_message":
		b.user(e.Time.Time, clawParts(b, e.Content, line), false)
	case "compaction":
		b.user(e.Time.Time, []Part{{Text: "The conversation before this was summarised:\n\n" + e.Summary}}, false)
	case "branch_summary":
		b.user(e.Time.Time, []Part{{Text: "Another way was tried from here and left. Its summary:\n\n" + e.Summary}}, false)
	case "session_info", "session":
	default:
		b.left.add("entry of type "+kind(e.Type), line)
	}
}

func clawSaid(b *builder, e *clawEntry, line int) {
	m := &e.Message
	switch m.Role {
	case "user":
		b.user(e.Time.Time, clawParts(b, m.Content, line), true)
	case "assistant":
		b.model(e.Time.Time, "", clawParts(b, m.Content, line), line)
		if m.Stop == "error" || m.Stop == "aborted" {
			b.user(e.Time.Time, []Part{{Text: mark + strings.TrimSuffix("That answer ended early ("+m.Stop+"). "+m.Error, " ")}}, false)
		}
	case "toolResult":
		var out []string
		for _, p := range clawParts(b, m.Content, line) {
			if p.Image != nil {
				b.left.add("picture in a result", line)
				p.Text = gonePhoto
			}
			out = append(out, p.Text)
		}
		b.result(m.Call, strings.Join(out, "\n"), m.IsError, line)
	case "bashExecution":
		if m.Excluded {
			b.left.add("command that was kept from the model", line)
			return
		}
		b.user(e.Time.Time, []Part{{Text: clawCommand(m)}}, false)
	case "custom", "hookMessage":
		b.user(e.Time.Time, clawParts(b, m.Content, line), false)
	case "branchSummary", "compactionSummary":
		b.user(e.Time.Time, []Part{{Text: m.Summary}}, false)
	default:
		b.left.add("message of role "+kind(m.Role), line)
	}
}

// clawCommand is a command that the person ran beside the conversation.
func clawCommand(m *clawMessage) string {
	s := "I ran this command:\n\n" + m.Command + "\n\nIt printed:\n\n" + m.Output
	if m.ExitCode != nil && *m.ExitCode != 0 {
		s += "\n\nIts exit code was " + itoa(*m.ExitCode) + "."
	}
	return s
}

func clawParts(b *builder, raw json.RawMessage, line int) []Part {
	return b.parts(raw, line, "text", "image", "toolCall", "thinking")
}
