package processes

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// ProgramsListed is a part of the programs of all sessions.
type ProgramsListed struct {
	app.Fresh
	Programs []view.Program `json:"programs"`
	Next     store.Position `json:"next,omitempty"` // before=NEXT has more; 0: there are none
}

func listPrograms(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*ProgramsListed, error) {
	before, limit, err := read.Part(q)
	if err != nil {
		return nil, err
	}
	session, status := belay.SessionID(q.Values.Get("sessionId")), q.Values.Get("status")
	if f.Stale, err = c.Reads.Summed(ctx, f); err != nil {
		return nil, err
	}
	all, next, err := view.AllPrograms(ctx, c.Store, before, func(p *view.Program) bool {
		return (session == "" || p.Session == session) && (status == "" || p.Status == status)
	}, limit)
	return &ProgramsListed{f, append([]view.Program{}, all...), next}, err
}
