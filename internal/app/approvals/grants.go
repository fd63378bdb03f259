package approvals

import (
	"cmp"
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
)

// ListGrants is what list_grants takes.
type ListGrants struct {
	Session belay.SessionID `json:"sessionId"`
	app.AsOf
}

// GrantsShown are what people allowed in a session.
type GrantsShown struct {
	app.Fresh
	Session belay.SessionID `json:"sessionId"`
	Grants  []GrantShown    `json:"grants"` // of the session first, then of its threads
}

// GrantShown is something that a person allowed and that counts yet.
type GrantShown struct {
	ID       belay.EventID  `json:"grantId"` // the fact that gave it
	Thread   belay.ThreadID `json:"threadId,omitempty"`
	Tool     string         `json:"tool"`
	Scope    string         `json:"scope"` // session, prefix, count, until
	Prefix   string         `json:"prefix,omitempty"`
	Bound    belay.Digest   `json:"bound,omitempty"` // of the exact call that it covers alone
	Boundary string         `json:"boundary,omitempty"`
	Taint    []string       `json:"taint,omitempty"` // content from outside, as kind:origin, beside which alone it covers what can send data out
	Left     int            `json:"left,omitempty"`  // calls that it covers yet; left out: it counts none
	Until    time.Time      `json:"until,omitzero"`
	By       string         `json:"by,omitempty"`
	Covers   string         `json:"covers,omitempty"` // tree: all agents of the thread's tree; below: the thread and those below it; left out: there are no others
}

func listGrants(ctx context.Context, r *app.Call, f app.Fresh, in *ListGrants) (*GrantsShown, error) {
	all, err := Grants(ctx, r, in.Session)
	return &GrantsShown{f, in.Session, all}, err
}

// Grants returns what people allowed in a session and that counts yet.
func Grants(ctx context.Context, r *app.Call, id belay.SessionID) ([]GrantShown, error) {
	s, err := r.Known(ctx, id)
	if err != nil {
		return nil, err
	}
	out := []GrantShown{}
	for _, g := range s.Grants {
		out = append(out, GrantShown{ID: g.ID, Tool: g.Tool, Scope: g.Scope, By: g.By})
	}
	for _, g := range s.Shared {
		if g.Until.IsZero() || r.Now().Before(g.Until) {
			covers := "tree"
			if g.Only {
				covers = "below"
			}
			out = append(out, GrantShown{ID: g.Grant, Thread: g.From, Tool: g.Tool, Scope: g.Scope, Prefix: g.Prefix, Bound: g.Bound, Taint: g.Taint, Left: g.Count, Until: g.Until, By: g.By, Covers: covers})
		}
	}
	for _, id := range s.All() {
		th, err := r.Thread(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, g := range th.Grants {
			if !g.Shared && (g.Until.IsZero() || r.Now().Before(g.Until)) {
				out = append(out, GrantShown{g.ID, id, g.Tool, g.Scope, g.Prefix, g.Bound, "", g.Taint, g.Left, g.Until, g.By, ""})
			}
		}
		for _, g := range th.Wider {
			out = append(out, GrantShown{ID: g.ID, Thread: id, Tool: g.Tool, Scope: "session", Bound: g.Exactly, Boundary: g.Bound.Name, Taint: g.Taint, By: g.By})
		}
	}
	return out, nil
}

// RevokeGrant is what revoke_grant takes.
type RevokeGrant struct {
	Session belay.SessionID `json:"sessionId"`
	Grant   belay.EventID   `json:"grantId"`
	Reason  string          `json:"reason,omitempty"`
}

// Revoke takes back what a person allowed. Told again it finds the stream
// also when the grant is gone.
func Revoke(ctx context.Context, r *app.Call, in *RevokeGrant) (*app.Result, error) {
	if err := cmp.Or(input.Named("grantId", string(in.Grant)), input.Text("reason", in.Reason, app.MaxReason)); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	streams := []belay.StreamID{in.Session.Stream()}
	for _, id := range s.All() {
		streams = append(streams, id.Stream())
	}
	i := 0
	for ; i < len(streams); i++ {
		there, err := gave(ctx, r, streams[i], in.Grant)
		if err != nil {
			return nil, err
		}
		if there {
			break
		}
	}
	if i == len(streams) {
		return nil, input.At("grantId", belay.Errorf(belay.CodeNotFound, "the session has no such grant").WithHint("list_grants lists them"))
	}
	told, err := r.Send(ctx, in.Session, streams[i], belay.RevokeGrant{Grant: string(in.Grant), Reason: in.Reason})
	if err != nil {
		return nil, input.At("grantId", err)
	}
	if i > 0 {
		told.Thread = s.All()[i-1]
	}
	return told, nil
}

// gave reports whether a fact of a stream is the grant with an id. A grant's fact
// that a thread got from its session isn't one.
func gave(ctx context.Context, r *app.Call, stream belay.StreamID, id belay.EventID) (bool, error) {
	for ev, err := range r.Store.Read(ctx, stream, 0) {
		if err != nil {
			return false, err
		}
		if p, ok := ev.Data.(event.PolicyChanged); ok && p.Kind == "grant" && p.Op == "granted" && p.Grant == "" && ev.ID() == id {
			return true, nil
		}
	}
	return false, nil
}
