package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/mcp"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// offered are the tools of a workspace's MCP servers, by what the store says was
// accepted of them, besides tools that have their names already.
func (h *Host) offered(ctx context.Context, w *config.Workspace, own []tool.Tool) ([]tool.Tool, error) {
	servers, ignored, err := w.Servers(ctx)
	if err != nil {
		return nil, nil //nolint:nilerr // whoever needs the settings meets the error
	}
	h.c.Say(ignored)
	if len(servers) == 0 {
		return nil, nil
	}
	book, err := h.book(ctx)
	if err != nil || book == nil {
		return nil, err
	}
	st, release, err := h.borrow(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	taken := map[string]bool{}
	for _, t := range own {
		taken[t.Spec().Name] = true
	}
	var all []tool.Tool
	for _, s := range servers {
		c, err := compared(ctx, st, book, &s)
		if err != nil {
			return nil, err
		}
		for _, t := range h.servers.Tools(&s.Server, c.Offered) {
			if name := t.Spec().Name; !taken[name] {
				taken[name] = true
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// compared is what a server was accepted with, held against what it was seen with
// last. Nothing of one that was never seen, or can't be used.
func compared(ctx context.Context, st store.Store, book *config.TrustBook, s *config.Server) (mcp.Compared, error) {
	t, ok := book.Server(s.File, s.Name)
	if !ok || s.Err != nil {
		return mcp.Compared{}, nil
	}
	accepted, err := definitions(ctx, st, &t.Accepted)
	if err != nil {
		return mcp.Compared{}, err
	}
	seen := accepted
	if t.Seen != nil {
		if seen, err = definitions(ctx, st, t.Seen); err != nil {
			return mcp.Compared{}, err
		}
	}
	return mcp.Compare(accepted, seen), nil
}

func definitions(ctx context.Context, st store.Store, ref *belay.Ref) ([]mcp.Definition, error) {
	content, err := st.Get(ctx, ref.Digest)
	if err != nil {
		return nil, err
	}
	return mcp.Decode(content)
}

// Learn looks at the MCP servers of a workspace that were never seen, so that turns
// have their tools. A server that can't be used is named, and no turn waits for it.
func (h *Host) Learn(ctx context.Context, ws string) error {
	p, err := h.At(ctx, ws)
	if err != nil {
		return err
	}
	servers, _, err := p.Servers(ctx)
	if err != nil || len(servers) == 0 {
		return err
	}
	select {
	case h.learning <- struct{}{}: // a turn waits while another one looks
		defer func() { <-h.learning }()
	case <-ctx.Done():
		return ctx.Err()
	}
	h.forgetTrust()
	book, err := h.book(ctx)
	if err != nil {
		return err
	}
	unseen := slices.DeleteFunc(servers, func(s config.Server) bool {
		_, known := book.Server(s.File, s.Name)
		return known || h.tried.lately(s.Where, h.c.Now())
	})
	if len(unseen) == 0 {
		return nil
	}
	looks := make([]mcp.Looked, len(unseen))
	errs := make([]error, len(unseen))
	mcp.Together(len(unseen), func(i int) { looks[i], errs[i] = h.look(ctx, p, &unseen[i]) })
	for i, s := range unseen {
		if errs[i] == nil {
			errs[i] = h.pin(ctx, &s.Server, looks[i].Tools)
		}
		if errs[i] != nil {
			next := "belay mcp test " + s.Name + " says more"
			if wantsLogin(errs[i]) {
				next = hint(errs[i])
				h.tried.refuse(s.Where)
			}
			h.c.Say([]config.Ignored{{Where: s.Where, What: "server " + s.Name, Why: why(errs[i]) + "; " + next}})
		}
	}
	_, err = h.Again(ctx, ws)
	return err
}

// again is how long a server that couldn't be used isn't tried before a turn.
const again = time.Minute

// trials are looks at servers, by where those are described.
type trials struct {
	mu      sync.Mutex
	at      map[string]time.Time
	refused map[string]bool // they want a login
}

// lately reports whether a server was tried a short while ago, and notes that it is now.
func (t *trials) lately(where string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tried, was := t.at[where]; was && now.Sub(tried) < again {
		return true
	}
	if t.at == nil {
		t.at = map[string]time.Time{}
	}
	t.at[where] = now
	return false
}

// refuse notes that a server wants a login.
func (t *trials) refuse(where string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused == nil {
		t.refused = map[string]bool{}
	}
	t.refused[where] = true
}

// forget forgets what is known of a server.
func (t *trials) forget(where string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.at, where)
	delete(t.refused, where)
}

// wantsLogin reports whether a server was seen to want a login.
func (t *trials) wantsLogin(where string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused[where]
}

// hint is what to do about an error.
func hint(err error) string {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*belay.Error](err); ok {
		return e.Hint
	}
	return ""
}

// why is an error in one line.
func why(err error) string {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Message
	}
	if e, ok := errors.AsType[*belay.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// look looks at a server within the boundary that it has in sessions.
func (h *Host) look(ctx context.Context, p *app.Place, s *config.Server) (mcp.Looked, error) {
	if s.Err != nil {
		return mcp.Looked{}, s.Err
	}
	box, err := h.boxOf(p, s)
	if err != nil {
		return mcp.Looked{}, err
	}
	return h.servers.Look(ctx, &s.Server, p.Path(), box)
}

// boxOf makes the boundary of a server; nil: nothing confines it, because that was said.
func (h *Host) boxOf(p *app.Place, s *config.Server) (func(tool.Sink) (*tool.Box, error), error) {
	if s.Remote() {
		return nil, nil
	}
	rules, err := p.Rules()
	if err != nil {
		return nil, err
	}
	if name := s.Bounds.Boundary; name != "" && !slices.Contains(rules.Set.Boundaries(), name) {
		return nil, belay.Errorf(belay.CodeBadBoundary, "there is no boundary %q", name).At(s.Where).WithHint("one of read-only, workspace-write, full, or one of policy.yaml")
	}
	b := rules.Set.OfTool(&s.Bounds)
	if b.Unbounded() {
		return nil, nil
	}
	if has := h.c.Boundary(); !has.Tries && !belay.Level(has.Level).AtLeast(belay.L1) {
		return nil, belay.Errorf(belay.CodeBadBoundary, "this machine can't confine the server: %s", has.Why).At(s.Where).WithHint("boundary: full runs it with your own rights; belay doctor shows what this machine can confine")
	}
	return func(sink tool.Sink) (*tool.Box, error) {
		return effect.BoxOf(h.c.Confine, &core.Bound{Name: b.Name, Is: b.Is}, p.Path(), sink)
	}, nil
}

// pin records what a server was seen with: new tools are accepted, changed ones wait
// for a person.
func (h *Host) pin(ctx context.Context, s *manifest.Server, seen []mcp.Definition) error {
	st := h.opened
	if st == nil {
		return nil
	}
	book, err := config.ReadTrust(ctx, st)
	if err != nil {
		return err
	}
	w := config.TrustWriter{Store: st, Owner: store.ThisProcess(), By: h.c.Principal}
	var accepted []mcp.Definition
	t, known := book.Server(s.File, s.Name)
	if known {
		if accepted, err = definitions(ctx, st, &t.Accepted); err != nil {
			return err
		}
	}
	c := mcp.Compare(accepted, seen)
	if known && t.Seen == nil && len(c.Changed) == 0 && len(c.Pinned) == len(accepted) {
		return nil
	}
	h.system.Lock()
	defer h.system.Unlock()
	defer h.forgetTrust()
	pinned, err := mcp.Encode(c.Pinned)
	if err != nil {
		return err
	}
	if err := w.AcceptServer(ctx, s.File, s.Name, pinned); err != nil || len(c.Changed) == 0 {
		return err
	}
	other, err := mcp.Encode(seen)
	if err != nil {
		return err
	}
	return w.SeeServer(ctx, s.File, s.Name, other)
}

// Mentioned implements app.Workspaces.
func (w *Workspaces) Mentioned(ctx context.Context, ws string, g *app.Given) error {
	return w.host.Mentioned(ctx, ws, g)
}

// Servers are the MCP servers of a workspace.
func (w *Workspaces) Servers(ctx context.Context, ws string) ([]app.Server, error) {
	p, err := w.host.At(ctx, ws)
	if err != nil {
		return nil, err
	}
	servers, _, err := p.Servers(ctx)
	if err != nil {
		return nil, err
	}
	book, err := config.ReadTrust(ctx, w.host.opened)
	if err != nil {
		return nil, err
	}
	out := make([]app.Server, 0, len(servers))
	for _, s := range servers {
		one := app.Server{Name: s.Name, Type: s.Type, Where: s.Where, Text: s.Text, Tools: []app.ServerTool{}}
		c, err := compared(ctx, w.host.opened, book, &s)
		if err != nil {
			return nil, err
		}
		_, known := book.Server(s.File, s.Name)
		login, err := w.host.servers.Grants.State(&s.Server)
		switch {
		case s.Err != nil:
			one.Status, one.Problem = "unusable", why(s.Err)
		case err != nil:
			one.Status, one.Problem = "unusable", why(err)
		case login == mcp.LoginOver || login == mcp.NoLogin && w.host.tried.wantsLogin(s.Where):
			one.Status = "needs_login"
		case !known:
			one.Status = "unseen"
		case len(c.Changed) > 0:
			one.Status, one.Changed = "changed", c.Changed
		default:
			one.Status = "accepted"
		}
		one.LoggedIn = login == mcp.LoggedIn
		for _, t := range w.host.servers.Tools(&s.Server, c.Offered) {
			one.Tools = append(one.Tools, toolOf(t.Spec()))
		}
		one.Prompts = promptsOf(s.Name, c.Offered)
		out = append(out, one)
	}
	return out, nil
}

func toolOf(s belay.ToolSpec) app.ServerTool {
	return app.ServerTool{Name: s.Name, Doc: s.Doc, Input: s.Input, Effect: s.Effect, ReadOnly: s.ReadOnly}
}

func promptsOf(server string, defs []mcp.Definition) (all []app.ServerPrompt) {
	for _, d := range mcp.Prompts(defs) {
		p := app.ServerPrompt{Name: server + ":" + d.Name, Description: cmp.Or(d.Description, d.Title)}
		for _, a := range d.Arguments {
			p.Variables = append(p.Variables, a.Name)
		}
		all = append(all, p)
	}
	return all
}

// TestServer starts a server, reads what it has and ends it. accept says that what it
// has is accepted.
func (w *Workspaces) TestServer(ctx context.Context, ws, name string, accept bool) (*app.ServerTest, error) {
	p, s, err := w.find(ctx, ws, name)
	if s == nil {
		return nil, err
	}
	l, err := w.host.look(ctx, p, s)
	out := &app.ServerTest{Name: name, Text: s.Text, Version: l.Version, Calls: l.Server, Protocol: l.Protocol, Offers: l.Can, Printed: string(w.host.c.Models.Secrets.Bytes([]byte(l.Printed))), Tools: []app.ServerTool{}}
	if l.Applied != nil {
		out.Boundary, out.Network, out.Level = l.Applied.Boundary, l.Applied.Network, l.Applied.Level
	}
	if v := l.Stopped; v != nil {
		out.Stopped = fmt.Sprintf("%s %s (%s)", v.Op, v.Target, v.Reason)
	}
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		out.Problem = why(err)
		if out.Hint = hintFor(s, l, out); wantsLogin(err) {
			out.Hint = hint(err)
			w.host.tried.refuse(s.Where)
		}
		return out, nil
	}
	w.host.tried.forget(s.Where)
	for _, r := range l.Refused {
		out.Refused = append(out.Refused, r.Name+": "+r.Why)
	}
	for _, t := range w.host.servers.Tools(&s.Server, l.Tools) {
		out.Tools = append(out.Tools, toolOf(t.Spec()))
	}
	out.Prompts = promptsOf(s.Name, l.Tools)
	if !accept {
		return out, w.host.pin(ctx, &s.Server, l.Tools)
	}
	content, err := mcp.Encode(l.Tools)
	if err == nil {
		err = config.TrustWriter{Store: w.host.opened, Owner: store.ThisProcess(), By: w.host.c.Principal}.AcceptServer(ctx, s.File, s.Name, content)
		w.host.forgetTrust()
	}
	return out, err
}

// hintFor is what to do about a server that can't be used.
func hintFor(s *config.Server, l mcp.Looked, t *app.ServerTest) string {
	flag := "; network: full (--network full) gives it one"
	switch {
	case l.Applied == nil || l.Applied.Network != belay.NetworkNone:
		return ""
	case slices.Contains([]string{"npx", "uvx", "pnpx", "bunx"}, path.Base(s.Command)):
		return path.Base(s.Command) + " fetches its package from the network, and the boundary has none" + flag
	case l.Stopped != nil && l.Stopped.Layer == "network", mcp.WantsNetwork(l.Printed):
		return "its boundary has no network" + flag
	case t.Printed == "":
		return "it prints nothing; perhaps it wants a network" + flag
	}
	return ""
}
