package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/model"
)

type modelsTestCmd struct {
	Provider string `placeholder:"NAME" help:"The model's provider; as a run would choose. [$$BELAY_PROVIDER]"`
	Model    string `placeholder:"NAME" help:"The model. [$$BELAY_MODEL]"`
	BaseURL  string `name:"base-url" placeholder:"URL" help:"Where the provider is reached. [$$BELAY_BASE_URL]"`
}

// trialTime bounds a trial; trialTokens its answer. Models that reason count
// what they think.
const (
	trialTime   = 2 * time.Minute
	trialTokens = 2000
)

// trialWord is what the model is asked to hand over.
const trialWord = "belay"

// trialRequest asks for a text and a call.
func trialRequest(name string) model.Request {
	return model.Request{
		Model: name, Attempt: 1, Key: string(belay.NewID(belay.PrefixStep)), MaxOutput: trialTokens,
		System:   "This is a test of the connection. Do exactly what you are asked, in a few words.",
		Messages: []belay.Message{belay.Text(belay.RoleUser, "Say in one short sentence that you are there. Then call the tool report with the word "+trialWord+".")},
		Tools: []model.ToolDef{{Name: "report", Doc: "Reports a word.",
			Schema: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string","description":"The word."}},"required":["word"],"additionalProperties":false}`)}},
	}
}

// trial is what came of one request.
type trial struct {
	pieces      int // of text
	call        *model.Call
	usage       *belay.Usage
	stop        string
	first, took time.Duration // until the first piece, and the end
	err         error
}

func (c *modelsTestCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	at, err := a.EnterHere(ctx)
	if err != nil {
		return 0, err
	}
	choices, err := a.WithModel(ctx, at, config.Given{"provider": {c.Provider}, "model": {c.Model}, "base-url": {c.BaseURL}})
	if err != nil {
		return 0, err
	}
	settings, err := a.Fresh(at, choices)
	if err != nil {
		return 0, err
	}
	p, err := a.Models().Provider(at.Workspace, settings.Settings)
	if err != nil {
		return 0, err
	}
	ctx, release := a.UntilSignal(ctx)
	defer release()
	ctx, stop := context.WithTimeout(ctx, trialTime)
	defer stop()
	t := try(ctx, &a.Env, p, settings.Model)
	return printFindings(&a.Env, judge(a, at, settings, t)), nil
}

// try sends the request.
func try(ctx context.Context, e *term.Env, p model.Provider, name string) (t trial) {
	began := e.Now()
	for chunk, err := range p.Stream(ctx, trialRequest(name)) {
		if err != nil {
			t.err = err
			break
		}
		if t.first == 0 {
			t.first = max(1, e.Now().Sub(began))
		}
		if chunk.Text != "" {
			t.pieces++
		}
		if chunk.Call != nil && t.call == nil {
			t.call = chunk.Call
		}
		if chunk.Usage != nil {
			t.usage = chunk.Usage
		}
		if t.stop = chunk.Stop; t.stop != "" {
			break
		}
	}
	t.took = e.Now().Sub(began)
	if t.err == nil && t.stop == "" {
		t.err = &model.Error{Class: "transient", Message: "the answer broke off"}
	}
	return t
}

// judge lists what works, each finding after those that it depends on.
func judge(a *command.Program, at *app.Place, c config.Settings, t trial) []app.Finding {
	where := c.BaseURL
	if s, err := at.Service(c.Provider); err == nil && where == "" {
		where = s.Base
	}
	all := []app.Finding{{Name: "provider", State: "ok", What: strings.TrimSpace(c.Provider + " " + where + ", model " + c.Model)}}
	add := func(name, state, what, try string) {
		all = append(all, app.Finding{Name: name, State: state, What: what, Try: try})
	}
	if t.err != nil {
		name, try := unanswered(c, t.err)
		if name != "reachable" {
			add("reachable", "ok", "it answers", "")
		}
		add(name, "failed", a.Secrets().String(t.err.Error()), try)
		return all
	}
	add("reachable", "ok", fmt.Sprintf("its answer began after %s", term.Millis(t.first.Milliseconds())), "")
	add("key", "ok", "it is accepted, or none is wanted", "")
	add("streaming", "ok", fmt.Sprintf("%s of text in %s", term.Plural(t.pieces, "piece"), term.Millis(t.took.Milliseconds())), "")
	switch call := t.call; {
	case t.stop == "length":
		add("tools", "failed", fmt.Sprintf("the answer was cut off after %d tokens", trialTokens), "name a model that thinks less, or --effort low in a run")
	case call == nil:
		add("tools", "failed", "it answered without calling the tool", "name a model that calls tools: an agent can do nothing without")
	case call.Name != "report" || !strings.Contains(call.Args, trialWord) || !json.Valid([]byte(call.Args)):
		add("tools", "failed", "it called "+term.Short(call.Name+" "+call.Args, 200)+" instead of report with the word "+trialWord, "name a model that calls tools well")
	default:
		add("tools", "ok", "it called the tool as it was asked to", "")
	}
	if u := t.usage; u == nil || u.Input == 0 && u.Output == 0 {
		add("usage", "note", "it reports no tokens: what a run costs is unknown", "")
	} else {
		add("usage", "ok", fmt.Sprintf("%d tokens read, %d written", u.Input, u.Output), "")
	}
	return all
}

// unanswered is what doesn't work when no answer came, and what to do.
func unanswered(c config.Settings, err error) (name, try string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return "reachable", "is the server up, and does it load the model? try again"
	}
	switch model.AsError(err).Class {
	case "auth":
		return "key", model.AsError(err).Hint
	case "rate_limited":
		return "limits", "wait a moment, or see the limits of your account"
	case "transient":
		return "reachable", "check --base-url and the network; is the server up?"
	case "bad_request":
		return "request", "check --model and --base-url: does this server speak the protocol, and have the model?"
	}
	return "answer", "belay models show " + term.Quoted(c.Model) + " says what is known of the model"
}
