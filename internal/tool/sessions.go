package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

//go:embed sessions.md
var sessionsDoc string

// SessionTools lists the tools by which an agent sees the other sessions of its workspace,
// and tells them something. They are offered by their names. What they show may have been
// written by strangers.
func SessionTools() []Tool {
	docs := strings.Split(strings.TrimSpace(sessionsDoc), "\n---\n")
	look := func(name, doc string, untrusted bool) Spec {
		return Spec{Name: name, Doc: doc, Effect: belay.Pure, ReadOnly: true, Access: belay.Read, Untrusted: untrusted, OutputLimit: 96 << 10, Load: LoadSearch}
	}
	send := Spec{Name: "sessions_send", Doc: docs[2], Effect: belay.Idempotent, Load: LoadSearch}
	return []Tool{New(look("sessions_list", docs[0], false), listSessions), New(look("sessions_history", docs[1], true), readSession), New(send, tellSession)}
}

type historyArgs struct {
	Session string `json:"session" jsonschema:"its id"`
	Before  int    `json:"before,omitempty" jsonschema:"the number that the page before names"`
}

type tellArgs struct {
	Session string `json:"session" jsonschema:"its id"`
	Text    string `json:"text"`
}

// peerArgs are the arguments of a command about another session.
type peerArgs struct {
	Session belay.SessionID `json:"sessionId"`
	Peer    string          `json:"peerSessionId,omitempty"`
	Before  int             `json:"before,omitempty"`
	Text    string          `json:"text,omitempty"`
}

func listSessions(ctx context.Context, c Call, _ struct{}) (Result, error) {
	var out struct {
		Sessions []struct {
			ID      string    `json:"sessionId"`
			Title   string    `json:"title"`
			Status  string    `json:"status"`
			Updated time.Time `json:"updatedAt"`
		} `json:"sessions"`
	}
	if err := c.Command(ctx, "list_peer_sessions", peerArgs{Session: c.Session}, &out); err != nil {
		return Result{}, err
	}
	var b strings.Builder
	for _, s := range out.Sessions {
		fmt.Fprintf(&b, "%s %s: %s, %s\n", s.ID, s.Updated.UTC().Format(time.RFC3339), s.Status, s.Title)
	}
	return Result{Text: cmp.Or(b.String(), "the workspace has no other session")}, nil
}

func readSession(ctx context.Context, c Call, in historyArgs) (Result, error) {
	var out struct {
		Messages []struct {
			Number int    `json:"number"`
			Role   string `json:"role"`
			Text   string `json:"text"`
		} `json:"messages"`
		Next int `json:"next"`
	}
	if err := c.Command(ctx, "read_peer_session", peerArgs{Session: c.Session, Peer: in.Session, Before: in.Before}, &out); err != nil {
		return Result{}, err
	}
	var b strings.Builder
	if out.Next > 0 {
		fmt.Fprintf(&b, "[what came before is left out; before: %d shows it]\n", out.Next)
	}
	for _, m := range out.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text)
	}
	return Result{Text: cmp.Or(b.String(), "nothing was said yet")}, nil
}

func tellSession(ctx context.Context, c Call, in tellArgs) (Result, error) {
	err := c.Command(ctx, "tell_peer_session", peerArgs{Session: c.Session, Peer: in.Session, Text: in.Text}, nil)
	return Result{Text: "told; it is read when that session runs next"}, err
}
