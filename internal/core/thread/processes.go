package thread

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Proc is a process that runs as far as facts say. One that is left when its
// call is over belongs to the thread from then on: it is wanted until it ends,
// until it is ended on request, or until its turn ends in another way than by an
// answer that leaves the conversation open.
type Proc struct {
	IDs    belay.IDs `json:"ids"`  // of its first fact
	What   string    `json:"what"` // the beginning of its command line
	PID    int       `json:"pid,omitempty"`
	Start  string    `json:"start,omitempty"` // with the pid its identity
	Since  time.Time `json:"since,omitzero"`
	Left   bool      `json:"left,omitempty"`
	Orphan bool      `json:"orphan,omitempty"` // the runtime that started it is gone
	Over   bool      `json:"over,omitempty"`   // it is to be ended
	Server string    `json:"server,omitempty"` // the MCP server that it is: no turn's, and ended when nothing uses it
	Asked  int       `json:"asked,omitempty"`  // inputs that commands asked for
	Inputs []Input   `json:"inputs,omitempty"` // those of them that wait
}

// Input is what a process is to read.
type Input struct {
	Number int    `json:"number"`
	Text   string `json:"text,omitempty"`
	End    bool   `json:"end,omitempty"`
}

const (
	maxWhat   = 120     // bytes of a command line, in questions and refusals
	maxInput  = 8 << 10 // bytes of an input, as a fact holds them
	maxInputs = 16      // that wait for one process
	maxGone   = 16      // processes whose end the model hasn't been told
	maxTold   = 60      // bytes of a command line, and of its end, as the model sees it
)

// peerServer is how facts call an MCP server.
const peerServer = "tool_server"

// endedProcess is a background process that has ended, for the note of the next step.
type endedProcess struct {
	Process belay.ProcessID `json:"process"`
	What    string          `json:"what"`
	How     string          `json:"how"`
	Turn    belay.TurnID    `json:"turn,omitempty"` // that started it
}

func (ps *programState) proc(id belay.ProcessID) *Proc {
	return find(ps.Procs, func(p *Proc) bool { return p.IDs.Process == id })
}

// applyProcess folds the facts of processes.
func (ps *programState) applyProcess(e event.Envelope) {
	ps.Took = ps.Took.Plus(programUsage(e.Data))
	switch p := e.Data.(type) {
	case event.ProcessStarted:
		ids := e.IDs
		ids.Request = ""
		ps.Procs = append(ps.Procs, Proc{IDs: ids, What: event.CutText(strings.Join(p.Argv, " "), maxWhat), PID: p.PID, Start: p.StartTime, Since: e.Time, Server: p.Server})
	case event.ChannelConnected:
		if p.Peer == peerServer && ps.proc(e.IDs.Process) == nil { // one that is elsewhere
			ps.Procs = append(ps.Procs, Proc{IDs: e.IDs, What: p.Account, Since: e.Time, Server: p.Account})
		}
	case event.ChannelDisconnected:
		if o := ps.proc(e.IDs.Process); o != nil && o.PID == 0 {
			ps.gone(e.IDs.Process, p.Reason)
		}
	case event.ProcessCompleted:
		ps.gone(e.IDs.Process, "exit "+strconv.Itoa(p.Exit))
	case event.ProcessFailed:
		ps.gone(e.IDs.Process, p.Class)
	case event.ProcessTerminated:
		ps.gone(e.IDs.Process, "ended from outside ("+p.Reason+")")
	case event.ModelRequested:
		if p.Attempt <= 1 { // it says so; another attempt says again what the first one did
			ps.Gone = nil
		}
	case event.ProcessInput:
		if o := ps.proc(e.IDs.Process); o != nil {
			o.sent(p)
		}
	case event.ToolResult:
		ps.leaves(e.IDs.Call)
	case event.ToolFailed:
		if p.Final || p.Input != nil {
			ps.leaves(e.IDs.Call)
		}
	case event.RunStatus:
		for i := range ps.Procs {
			ps.Procs[i].Orphan = ps.Procs[i].Orphan || p.Phase == "takeover"
		}
	}
}

// gone forgets a process that has ended. If its call had left it running, or a
// crash ended it, the next step gets a note.
func (p *programState) gone(id belay.ProcessID, how string) {
	o := p.proc(id)
	if o == nil {
		return
	}
	if o.Server == "" && (o.Left || o.Orphan) { // what a crash took of a call can still be read
		p.Gone = keep(append(p.Gone, endedProcess{Process: id, What: event.CutText(strings.Join(strings.Fields(o.What), " "), maxTold), How: event.CutText(how, maxTold), Turn: o.IDs.Turn}), maxGone)
	}
	p.Procs = slices.DeleteFunc(p.Procs, func(o Proc) bool { return o.IDs.Process == id })
}

// goneNote is the note to a step about processes that ended since the one
// before.
func (p *programState) goneNote() string {
	if len(p.Gone) == 0 {
		return ""
	}
	lines := []string{"Programs that ended since your last step; process reads what they printed:"}
	for _, g := range p.Gone {
		lines = append(lines, string(g.Process)+" ("+g.What+"): "+g.How)
	}
	return strings.Join(lines, "\n")
}

// leaves hands what a call left running over to the thread.
func (p *programState) leaves(call belay.CallID) {
	for i := range p.Procs {
		if p.Procs[i].IDs.Call == call {
			p.Procs[i].Left = true
		}
	}
}

func (o *Proc) sent(p event.ProcessInput) {
	switch {
	case p.Asked && p.Signal != "":
		o.Over = true
	case p.Asked:
		o.Asked = p.Number
		o.Inputs = append(o.Inputs, Input{Number: p.Number, Text: p.Text, End: p.End})
	default:
		o.Inputs = slices.DeleteFunc(o.Inputs, func(i Input) bool { return i.Number == p.Number })
	}
}

// endProcs gives up what a turn's calls started when it ends.
func (p *programState) endProcs() {
	for i := range p.Procs {
		p.Procs[i].Over = p.Procs[i].Over || p.Procs[i].Server == ""
	}
}

// lostPrograms settles what ran when the runtime stopped: it ended too, in an
// unknown way.
func lostPrograms(d *decision) bool {
	for _, o := range d.Procs {
		switch {
		case o.Orphan && o.PID == 0:
			d.record(core.Fact{IDs: o.IDs, Data: event.ChannelDisconnected{Reason: "failed"}})
		case o.Orphan:
			d.record(core.Fact{IDs: o.IDs, Data: event.ProcessFailed{Class: "lost",
				Reason: "the runtime stopped while it was running; it was ended then, and nobody saw how far it had come"}})
		}
	}
	return false
}

// procs are the effects that processes of the background want.
func (p *programState) procs() (effects []core.Effect) {
	for _, o := range p.Procs {
		if !o.Left || o.Over {
			continue
		}
		effects = append(effects, core.KeepProcess{IDs: o.IDs})
		if len(o.Inputs) > 0 { // one after the other
			in := o.Inputs[0]
			effects = append(effects, core.SendInput{IDs: o.IDs, Number: in.Number, Text: in.Text, End: in.End})
		}
	}
	return effects
}

// Background names the programs that calls left running in the background.
func (p *programState) Background() string {
	var names []string
	for _, o := range p.Procs {
		if o.Left && !o.Over && o.Server == "" {
			names = append(names, string(o.IDs.Process)+" ("+o.What+")")
		}
	}
	return strings.Join(names, ", ")
}

// busy is the refusal of a completion while processes run that the model can
// still see to; nil: there are none, or this is its last word.
func (s *State) busy() *event.Problem {
	if s.Turn.Step.Kind == KindGrace || s.Turn.Step.Kind == KindFinal {
		return nil
	}
	names := s.Background()
	if names == "" {
		return s.agentsRunning()
	}
	return &event.Problem{Class: "conflict", Code: "PROCESSES_RUNNING", Message: event.CutText("still running: "+names, maxSaid),
		Hint: "wait for them with process, or end them with process_send"}
}

// running is the process that a command is about, if it runs in the background.
// Whoever sends the command knows that the process was started in this thread;
// the state has only those that haven't ended.
func (s *State) running(id belay.ProcessID) (*Proc, error) {
	o := s.proc(id)
	switch {
	case o == nil || o.Orphan:
		return nil, belay.Errorf(belay.CodeUnavailable, "no process %s runs in %s now", id, s.Thread).WithHint("belay process output %s prints what is kept of it; belay process list %s says what runs", id, s.Session)
	case !o.Left:
		return nil, belay.Errorf(belay.CodeBadState, "process %s belongs to a call that isn't over", id).WithHint("belay sessions interrupt %s ends the turn", s.Session)
	}
	return o, nil
}

func (h *handler) writeStdin(c belay.WriteProcessStdin) error {
	to, err := h.running(c.Process)
	if err != nil {
		return err
	}
	switch {
	case c.Input == "" && !c.End:
		return belay.Errorf(belay.CodeBadCommand, "there is nothing to write").WithHint("give a text, or say that no more comes")
	case event.TextLen(c.Input) > maxInput:
		return belay.Errorf(belay.CodeTooLarge, "the input has %d bytes; at most %d are taken at once", len(c.Input), maxInput).WithHint("write it in pieces")
	case len(to.Inputs) >= maxInputs:
		return belay.Errorf(belay.CodeBusy, "%d inputs wait already for %s", len(to.Inputs), c.Process)
	}
	h.record(core.Fact{IDs: to.IDs, Data: event.ProcessInput{Asked: true, Number: to.Asked + 1, Bytes: int64(len(c.Input)), Text: c.Input, End: c.End, By: h.order.Principal}})
	return nil
}

func (h *handler) terminate(c belay.TerminateProcess) error {
	to, err := h.running(c.Process)
	if err == nil && !to.Over {
		h.record(core.Fact{IDs: to.IDs, Data: event.ProcessInput{Asked: true, Signal: "SIGTERM", By: h.order.Principal, Reason: event.CutText(c.Reason, maxSaid)}})
	}
	return err
}
