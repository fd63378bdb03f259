package view

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// figuresName is the name of the view of figures in the store; its number changes with
// the shape of a row.
const figuresName = "figures/4"

// Keys of its rows. Each ends in a session, so that it goes with it. Of lists the newest
// row is the first: back is a position that counts down.
const (
	hourKey    = "1/" // + hour/session: an Hour
	decidedKey = "2/" // + back/session: a Decided
	programKey = "3/" // + back/session: a Program
	verdictKey = "4/" // + back/session: a Verdict
	openKey    = "5/" // + session: an open
	agentKey   = "6/" // + agent/session: an AgentRuns
	ranKey     = "7/" // + back/session: an AgentRun
)

const hourForm = "2006-01-02T15"

// Hour is what a session used in an hour, and what came of it.
type Hour struct {
	Session belay.SessionID `json:"-"`
	Start   time.Time       `json:"-"`

	Models map[string]Spent        `json:"models,omitempty"` // by provider/model
	Tools  map[string]Calls        `json:"tools,omitempty"`
	Ends   map[belay.Outcome]Turns `json:"ends,omitempty"`
	Rules  map[string]Hits         `json:"rules,omitempty"`
}

// Spent is what requests took.
type Spent struct {
	Requests int           `json:"requests,omitempty"`
	Cost     event.CostSum `json:"cost,omitzero"`
	Usage    belay.Usage   `json:"usage,omitzero"`
}

// Calls is how calls of a tool ended.
type Calls struct {
	Ended  int   `json:"ended,omitempty"`
	Failed int   `json:"failed,omitempty"` // of these, also commands with an exit code that isn't 0
	MS     int64 `json:"ms,omitempty"`
}

// Turns is what turns took that ended alike.
type Turns struct {
	Ended int           `json:"ended,omitempty"`
	MS    int64         `json:"ms,omitempty"` // driven
	Cost  event.CostSum `json:"cost,omitzero"`
	Usage belay.Usage   `json:"usage,omitzero"`
}

// Hits are the calls that a rule decided.
type Hits struct {
	Allow int       `json:"allow,omitempty"`
	Ask   int       `json:"ask,omitempty"`
	Deny  int       `json:"deny,omitempty"`
	Last  time.Time `json:"last,omitzero"`
}

// Add is the sum of two.
func (h Hits) Add(o Hits) Hits {
	if o.Last.After(h.Last) {
		h.Last = o.Last
	}
	return Hits{h.Allow + o.Allow, h.Ask + o.Ask, h.Deny + o.Deny, h.Last}
}

// Decided is a question that doesn't wait any more.
type Decided struct {
	ID       belay.ActionID  `json:"actionId"`
	Session  belay.SessionID `json:"sessionId"`
	Thread   belay.ThreadID  `json:"threadId,omitempty"`
	Turn     belay.TurnID    `json:"turnId,omitempty"`
	Call     belay.CallID    `json:"callId,omitempty"`
	Kind     string          `json:"kind"`
	Tool     string          `json:"tool,omitempty"`
	Prompt   string          `json:"prompt,omitempty"` // its beginning
	Asked    time.Time       `json:"asked,omitzero"`
	Decided  time.Time       `json:"decided"`
	Decision string          `json:"decision"` // allow, deny, answer, cancelled
	By       string          `json:"by"`       // a principal, deadline, turn, server
	Scope    string          `json:"scope,omitempty"`
	Message  string          `json:"message,omitempty"` // its beginning
}

// Program is a program that a session ran, or runs.
type Program struct {
	ID      belay.ProcessID `json:"processId"`
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty"`
	Call    belay.CallID    `json:"callId,omitempty"`
	Command string          `json:"command"` // its beginning
	Folder  string          `json:"folder,omitempty"`
	Server  string          `json:"server,omitempty"` // the MCP server that it is
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended,omitzero"`
	Status  string          `json:"status"` // running, exited, ended (from outside), failed
	Exit    int             `json:"exit"`   // of one that exited
	Reason  string          `json:"reason,omitempty"`
	Bytes   int64           `json:"bytes,omitempty"` // that it printed
	Lines   int64           `json:"lines,omitempty"`
	MS      int64           `json:"ms,omitempty"`
	event.ProcessUse
}

// Verdict is what was decided about a call.
type Verdict struct {
	Event    belay.EventID   `json:"eventId"`
	Session  belay.SessionID `json:"sessionId"`
	Thread   belay.ThreadID  `json:"threadId,omitempty"`
	Call     belay.CallID    `json:"callId,omitempty"`
	At       time.Time       `json:"at"`
	Tool     string          `json:"tool"`
	What     string          `json:"what,omitempty"` // the beginning of its arguments
	Decision string          `json:"decision"`       // allow, ask, deny
	Source   string          `json:"source"`
	Rule     string          `json:"rule"`
	Tier     string          `json:"tier,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Mode     string          `json:"mode,omitempty"`
}

// open is what a session has begun and not ended.
type open struct {
	Asked    map[belay.ActionID]Decided  `json:"asked,omitempty"`
	Programs map[belay.ProcessID]string  `json:"programs,omitempty"` // the key of its row
	Models   map[belay.ThreadID]string   `json:"models,omitempty"`   // that were asked last
	Calls    map[belay.CallID]calledTool `json:"calls,omitempty"`
	Agents   map[belay.TurnID]string     `json:"agents,omitempty"` // whose turns they are
}

// calledTool is a call of the last answer of a thread, until it is judged.
type calledTool struct {
	Thread belay.ThreadID `json:"thread"`
	What   string         `json:"what,omitempty"`
}

// figuresFolding folds the view of figures.
type figuresFolding struct {
	st   store.Store
	kept map[string]any // rows that were loaded or made; nil is one that is gone
}

func back(p store.Position) string { return fmt.Sprintf("%016x", ^uint64(p)) }

// figure is a row, as it stands in this chunk.
func figure[T any](ctx context.Context, f *figuresFolding, key string) (*T, error) {
	if v := f.kept[key]; v != nil {
		return v.(*T), nil
	}
	v := new(T)
	if _, gone := f.kept[key]; !gone {
		data, err := f.st.ViewRow(ctx, figuresName, key)
		if err == nil {
			err = decode(key, data, v)
		}
		if err != nil {
			return nil, err
		}
	}
	f.kept[key] = v
	return v, nil
}

func (f *figuresFolding) fold(ctx context.Context, rec store.Record) error {
	e, id := rec.Event, rec.Event.IDs.Session
	if id == "" || id == belay.SystemSession {
		return nil
	}
	key := func(list string) string { return list + back(rec.Position) + "/" + string(id) }
	switch p := e.Data.(type) {
	case event.ModelRequested, event.ModelCompleted, event.CostRecorded, event.ToolResult, event.ToolFailed, event.TurnCompleted, event.TurnFailed, event.PermissionEvaluated:
		o, err := figure[open](ctx, f, openKey+string(id))
		if err != nil {
			return err
		}
		h, err := figure[Hour](ctx, f, hourKey+e.Time.UTC().Format(hourForm)+"/"+string(id))
		if err != nil {
			return err
		}
		h.add(e, o)
		if err := f.agentEnded(ctx, rec, o); err != nil {
			return err
		}
		if p, ok := p.(event.PermissionEvaluated); ok {
			f.kept[key(verdictKey)] = &Verdict{e.ID(), id, e.IDs.Thread, e.IDs.Call, e.Time, p.Tool, o.Calls[e.IDs.Call].What, p.Decision, p.Source, p.Rule, p.Tier, p.Reason, p.Mode}
		}
	case event.TurnStarted:
		if p.Agent == nil {
			return nil
		}
		o, err := figure[open](ctx, f, openKey+string(id))
		if err != nil {
			return err
		}
		put(&o.Agents, e.IDs.Turn, p.Agent.Name)
	case event.ActionRequired:
		o, err := figure[open](ctx, f, openKey+string(id))
		if err != nil {
			return err
		}
		put(&o.Asked, e.IDs.Action, Decided{ID: e.IDs.Action, Session: id, Thread: e.IDs.Thread, Turn: e.IDs.Turn, Call: e.IDs.Call, Kind: p.Kind, Tool: p.Tool, Prompt: preview(p.Prompt.Text), Asked: e.Time})
	case event.ActionResolved:
		o, err := figure[open](ctx, f, openKey+string(id))
		if err != nil {
			return err
		}
		d, asked := o.Asked[e.IDs.Action]
		if !asked {
			return nil
		}
		delete(o.Asked, e.IDs.Action)
		d.Decided, d.Decision, d.By, d.Scope, d.Message = e.Time, p.Decision, p.By, p.Scope, preview(p.Message.Text)
		f.kept[key(decidedKey)] = &d
	case event.ProcessStarted:
		o, err := figure[open](ctx, f, openKey+string(id))
		if err != nil {
			return err
		}
		k := key(programKey)
		put(&o.Programs, e.IDs.Process, k)
		f.kept[k] = &Program{ID: e.IDs.Process, Session: id, Thread: e.IDs.Thread, Call: e.IDs.Call, Command: preview(strings.Join(p.Argv, " ")), Folder: p.Cwd, Server: p.Server, Started: e.Time, Status: Running}
	case event.ProcessCompleted, event.ProcessTerminated, event.ProcessFailed:
		return f.ended(ctx, e)
	}
	return nil
}

// put sets a value of a map that may be nil.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// ended notes how a program ended.
func (f *figuresFolding) ended(ctx context.Context, e event.Envelope) error {
	o, err := figure[open](ctx, f, openKey+string(e.IDs.Session))
	if err != nil {
		return err
	}
	key, started := o.Programs[e.IDs.Process]
	if !started {
		return nil
	}
	delete(o.Programs, e.IDs.Process)
	p, err := figure[Program](ctx, f, key)
	if err != nil {
		return err
	}
	p.Ended = e.Time
	p.ProcessUse, p.MS, _ = event.UseOf(e.Data)
	switch end := e.Data.(type) {
	case event.ProcessCompleted:
		p.Status, p.Exit, p.Bytes, p.Lines = "exited", end.Exit, end.Bytes, end.Lines
	case event.ProcessTerminated:
		p.Status, p.Reason, p.Bytes, p.Lines = Ended, end.Reason, end.Bytes, end.Lines
	case event.ProcessFailed:
		p.Status, p.Reason = "failed", cmp.Or(end.Reason, end.Class)
	}
	return nil
}

// add counts a fact of the hour. o is what its session has open.
func (h *Hour) add(e event.Envelope, o *open) {
	spend := func(model string, requests int) {
		s := h.Models[model]
		put(&h.Models, model, Spent{s.Requests + requests, s.Cost.Add(e.Cost()), s.Usage.Add(e.Used())})
	}
	call := func(tool string, failed bool, ms int64) {
		c := h.Tools[tool]
		c.Ended, c.MS = c.Ended+1, c.MS+ms
		if failed {
			c.Failed++
		}
		put(&h.Tools, tool, c)
	}
	end := func(how belay.Outcome, s event.TurnStats) {
		t, s := h.Ends[how], s.Own()
		put(&h.Ends, how, Turns{t.Ended + 1, t.MS + s.ActiveMS, t.Cost.Add(s.Cost), t.Usage.Add(s.Usage)})
		maps.DeleteFunc(o.Calls, func(_ belay.CallID, c calledTool) bool { return c.Thread == e.IDs.Thread })
	}
	switch p := e.Data.(type) {
	case event.ModelRequested:
		put(&o.Models, e.IDs.Thread, modelName(p.Provider, p.Model))
	case event.ModelCompleted:
		spend(o.Models[e.IDs.Thread], 1)
		maps.DeleteFunc(o.Calls, func(_ belay.CallID, c calledTool) bool { return c.Thread == e.IDs.Thread })
		for _, c := range p.Calls {
			put(&o.Calls, c.ID, calledTool{e.IDs.Thread, preview(string(c.Args))})
		}
	case event.CostRecorded:
		requests := 0
		if p.Failed || e.IDs.Call != "" || p.Summary() {
			requests = 1
		}
		spend(modelName(p.Provider, p.Model), requests)
	case event.ToolResult:
		call(p.Name, p.Exit != 0, p.Millis)
	case event.ToolFailed:
		if p.Final {
			call(p.Name, true, p.Millis)
		}
	case event.TurnCompleted:
		end(belay.Completed, p.Stats)
	case event.TurnFailed:
		end(p.Outcome, p.Stats)
	case event.PermissionEvaluated:
		hit := Hits{Last: e.Time}
		switch p.Decision {
		case "allow":
			hit.Allow = 1
		case "ask":
			hit.Ask = 1
		default:
			hit.Deny = 1
		}
		put(&h.Rules, p.Rule, h.Rules[p.Rule].Add(hit))
	}
}

func modelName(provider, model string) string {
	if model == "" {
		return provider
	}
	return provider + "/" + model
}

func (f *figuresFolding) remove(ctx context.Context, id belay.SessionID) error {
	for key := range f.kept {
		if store.About(key) == id {
			f.kept[key] = nil
		}
	}
	left, err := f.st.ViewAbout(ctx, figuresName, id)
	for _, key := range left {
		f.kept[key] = nil
	}
	return err
}

func (f *figuresFolding) full() bool { return false }

func (f *figuresFolding) rows() (map[string]store.ViewRow, error) {
	out := map[string]store.ViewRow{}
	for key, v := range f.kept {
		if v == nil {
			out[key] = store.ViewRow{}
			continue
		}
		data, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		var r store.ViewRow
		switch of := v.(type) {
		case *AgentRuns:
			r = of.entry(key)
		case *Hour:
			if r, err = of.entry(key); err != nil {
				return nil, err
			}
		}
		r.Data = data
		out[key] = r
	}
	return out, nil
}

// Hours hands on what sessions used from a time on until another, the oldest hour first.
func Hours(ctx context.Context, st store.Store, from, to time.Time, take func(*Hour)) error {
	for key, data := range st.ViewRows(ctx, figuresName, hourKey+from.UTC().Format(hourForm)) {
		rest, is := strings.CutPrefix(key, hourKey)
		at, session, _ := strings.Cut(rest, "/")
		if !is {
			break
		}
		h := Hour{Session: belay.SessionID(session)}
		var err error
		if h.Start, err = time.Parse(hourForm, at); err == nil {
			err = decode(key, data, &h)
		}
		if err != nil {
			return err
		}
		if !h.Start.Before(to) {
			break
		}
		take(&h)
	}
	return ctx.Err()
}

// Listed is a row of a list, and its place there.
type Listed[T any] struct {
	Row T
	At  store.Position
}

// DecidedActions are questions that were decided before a position, the newest first; 0
// is the end. next is where more of them begin, 0: there are none.
func DecidedActions(ctx context.Context, st store.Store, before store.Position, takes func(*Decided) bool, most int) (all []Decided, next store.Position, err error) {
	return listed(ctx, st, decidedKey, before, takes, most)
}

// AllPrograms are programs that started before a position, the newest first.
func AllPrograms(ctx context.Context, st store.Store, before store.Position, takes func(*Program) bool, most int) (all []Program, next store.Position, err error) {
	return listed(ctx, st, programKey, before, takes, most)
}

// Verdicts are those before a position, the newest first.
func Verdicts(ctx context.Context, st store.Store, before store.Position, takes func(*Verdict) bool, most int) (all []Verdict, next store.Position, err error) {
	return listed(ctx, st, verdictKey, before, takes, most)
}

// maxRows bounds the rows that are looked at for a part of a list.
const maxRows = 20000

// listed are rows of a list before a position, and the position before which there may
// be more.
func listed[T any](ctx context.Context, st store.Store, list string, before store.Position, takes func(*T) bool, most int) (out []T, next store.Position, err error) {
	from, n := list, 0
	if before > 0 {
		from = list + back(before-1)
	}
	for key, data := range st.ViewRows(ctx, figuresName, from) {
		rest, is := strings.CutPrefix(key, list)
		if !is {
			break
		}
		if len(out) == most || n == maxRows {
			return out, next, nil
		}
		n++
		hex, _, _ := strings.Cut(rest, "/")
		at, err := strconv.ParseUint(hex, 16, 64)
		var row T
		if err == nil {
			err = decode(key, data, &row)
		}
		if err != nil {
			return nil, 0, err
		}
		if next = store.Position(^at); takes(&row) {
			out = append(out, row)
		}
	}
	return out, 0, ctx.Err()
}
