package access

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
)

// ListAudit is what list_audit takes.
type ListAudit struct {
	Before    int64  `json:"before,omitempty" jsonschema:"next of the answer before; the newest when it is left out"`
	Limit     int    `json:"limit,omitempty" jsonschema:"how many at most; 100 when it is left out, 500 is the most"`
	Principal string `json:"principal,omitempty" jsonschema:"only those of this caller, as entries name it"`
	app.AsOf
}

// AuditListed is a part of the record of callers.
type AuditListed struct {
	app.Fresh
	Entries []AuditEntry   `json:"entries"`
	Next    store.Position `json:"next,omitempty"` // before=NEXT may have more; 0: there are none
}

// AuditEntry is what a caller asked for, and what came of it.
type AuditEntry struct {
	Event     belay.EventID   `json:"eventId"`
	At        time.Time       `json:"at"`
	Principal string          `json:"principal"`
	Command   string          `json:"command"`
	Code      belay.Code      `json:"code"`              // accepted, or why it was refused
	Message   string          `json:"message,omitempty"` // what it was about
	Request   belay.CommandID `json:"requestId,omitempty"`
	Count     int             `json:"count,omitempty"` // of several alike that are recorded together
}

// Bounds of a part.
const (
	auditPart   = 100
	mostAudit   = 500
	auditLooked = 20_000 // facts
)

func listAudit(ctx context.Context, c *app.Call, f app.Fresh, in *ListAudit) (*AuditListed, error) {
	limit := in.Limit
	if limit == 0 {
		limit = auditPart
	}
	if limit < 1 || limit > mostAudit {
		return nil, input.At("limit", belay.Errorf(belay.CodeBadCommand, "%d is no number from 1 to %d", in.Limit, mostAudit).WithHint("limit: %d", auditPart))
	}
	if in.Before < 0 {
		return nil, input.At("before", belay.Errorf(belay.CodeBadCommand, "%d is no position", in.Before).WithHint("next of the answer before"))
	}
	out := &AuditListed{Fresh: f, Entries: []AuditEntry{}}
	looked := 0
	for rec, err := range c.Store.Window(ctx, store.Window{Session: belay.SystemSession, Before: store.Position(in.Before), Newest: true}) {
		if err != nil {
			return nil, err
		}
		if len(out.Entries) == limit || looked == auditLooked {
			return out, nil
		}
		looked++
		out.Next = rec.Position
		p, ok := rec.Event.Data.(event.ChannelMessage)
		if !ok || p.Kind != "audit" || in.Principal != "" && p.Principal != in.Principal {
			continue
		}
		out.Entries = append(out.Entries, AuditEntry{rec.Event.ID(), rec.Event.Time, p.Principal, p.Command, belay.Code(p.Code), p.Message, rec.Event.IDs.Request, p.Count})
	}
	out.Next = 0
	return out, nil
}
