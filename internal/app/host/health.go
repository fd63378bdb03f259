package host

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// AgentFiles are the agents of a place that are kept as files, with what they need and isn't
// here.
func (h *Host) AgentFiles(ctx context.Context, p *app.Place) (*agentfile.Catalog, error) {
	c, err := p.Agents(ctx)
	if err != nil {
		return nil, err
	}
	c.Needs(func(provider, model string) string {
		all := h.c.Models.Routes(p.Workspace, p.Of(belay.Settings{}, provider, model))
		if len(all) == 0 {
			return "network"
		}
		return all[0].Lacks
	}, func(program string) bool { return process.LookPath(h.c.Env.Vars, program) != "" })
	return c, nil
}

// AgentRecords are what is known of agents besides their files: what people made of them,
// and their runs. Nothing, if there is no store yet.
func (h *Host) AgentRecords(ctx context.Context) (*config.TrustBook, map[string]view.AgentRuns, error) {
	st, release, err := h.borrow(ctx)
	if st == nil || err != nil {
		return nil, nil, err
	}
	defer release()
	book, err := config.ReadTrust(ctx, st)
	if err != nil {
		return nil, nil, err
	}
	within, cancel := context.WithTimeout(ctx, sumsWithin)
	defer cancel()
	err = view.Projector{Store: st, Of: view.Figures}.Catchup(within)
	if err != nil && within.Err() == nil && belay.CodeOf(err) != belay.CodeStoreReadOnly {
		return nil, nil, err
	}
	runs, err := view.RunsOfAgents(ctx, st, "")
	return book, runs, err
}

// AgentWork are the turns of an agent that haven't ended, and its life. None, if there is no
// store yet.
func (h *Host) AgentWork(ctx context.Context, called, path string, ends []view.AgentEnd) ([]app.AgentWork, *story.AgentLife, error) {
	st, release, err := h.borrow(ctx)
	if st == nil || err != nil {
		return nil, nil, err
	}
	defer release()
	if err := view.Catchup(ctx, st); err != nil && belay.CodeOf(err) != belay.CodeStoreReadOnly {
		return nil, nil, err
	}
	works, err := app.WorkOf(ctx, h.Reader(st), called)
	if err != nil {
		return nil, nil, err
	}
	life, err := app.LifeOf(ctx, h.Reader(st), called, path, ends, works)
	return works, life, err
}

// healthWithin is how long a health command may take.
const healthWithin = 10 * time.Second

// CheckHealth runs the health command of an agent in a workspace and records what it said;
// nothing: the agent is well. It counts only in a file that is trusted.
func (h *Host) CheckHealth(ctx context.Context, ws string, a *agentfile.Agent) (sick string, err error) {
	switch {
	case len(a.Health) == 0:
		return "", belay.Errorf(belay.CodeBadState, "agent %s has no health command", a.Called()).At(a.Path).WithHint("health: [PROGRAM, ARGUMENT…] in its file names one")
	case !a.Trusted:
		return "", belay.Errorf(belay.CodeUntrusted, "the file isn't trusted: its health command doesn't count").At(a.Path).WithHint("belay trust %s", a.Path)
	}
	box, err := h.healthBox(ctx, ws, a)
	if err == nil {
		sick, err = h.runHealth(ctx, ws, a.Health, box)
	}
	if err != nil {
		return "", err
	}
	sick = event.CutText(h.c.Models.Secrets.String(sick), 500)
	w := config.TrustWriter{Store: h.opened, Owner: store.ThisProcess(), By: h.c.Principal}
	return sick, w.CheckedAgent(ctx, a.Called(), sick)
}

// healthBox is what an agent's health command runs in: the boundary that its programs would
// have in a new session. nil: a person's setting is that nothing confines them.
func (h *Host) healthBox(ctx context.Context, ws string, a *agentfile.Agent) (process.Box, error) {
	p, err := h.At(ctx, ws)
	if err != nil {
		return nil, err
	}
	l, err := p.Layers(nil)
	if err != nil {
		return nil, err
	}
	s, err := l.Unmodelled()
	if err != nil {
		return nil, err
	}
	rules, err := p.Rules()
	if err != nil {
		return nil, err
	}
	s.Mode = policy.Narrower(a.Mode, s.Mode)
	have, own, err := bounds(rules.Set, s.Settings, a)
	b := policy.Meet(have, own)
	if err != nil || b.Unbounded() {
		return nil, err
	}
	if has := h.c.Boundary(); !has.Tries && !belay.Level(has.Level).AtLeast(belay.L1) {
		return nil, belay.Errorf(belay.CodeBadBoundary, "this machine can't confine the health command: %s", has.Why).At(a.Path).WithHint("the setting boundary: full runs it with your own rights; belay doctor shows what this machine can confine")
	}
	return h.c.Confine(b.Is, p.Path())
}

// runHealth runs a health command. It gets nothing of this process's environment but where
// programs and the home are.
func (h *Host) runHealth(ctx context.Context, ws string, argv []string, box process.Box) (sick string, err error) {
	path := process.LookPath(h.c.Env.Vars, argv[0])
	if path == "" {
		return argv[0] + " isn't there", nil
	}
	within, cancel := context.WithTimeoutCause(ctx, healthWithin, errors.New("time"))
	defer cancel()
	out := process.Preview{Head: 4 << 10}
	p, err := process.Start(process.Command{Path: path, Argv: argv, Dir: ws, Env: []string{"PATH=" + h.c.Env.Get("PATH"), "HOME=" + h.c.Env.Get("HOME")}, Output: &out, Box: box})
	if err != nil {
		return strings.Join(argv, " ") + " can't be started: " + err.Error(), nil
	}
	if err = p.Await(within); err == nil {
		err = p.Release()
	}
	if err != nil { // it never ran
		p.Stop(process.Cancelled)
		<-p.Done()
		return "", belay.Errorf(belay.CodeBadBoundary, "the health command's boundary couldn't be applied, so nothing ran: %v", err).At(ws).WithHint("belay doctor shows what this machine can confine")
	}
	end := p.Wait(within)
	said, _, _ := out.Parts()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case end.How != process.Exited:
		return strings.Join(argv, " ") + " took longer than " + healthWithin.String(), nil
	case end.Code != 0:
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		return strings.TrimSuffix(strings.Join(argv, " ")+" failed: "+first, ": "), nil
	}
	return "", nil
}
