package google

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// piece is one message of an answer's stream: a part of the answer, as an answer.
type piece struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		Finish  string `json:"finishReason"`
		Message string `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		Blocked string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt   int64 `json:"promptTokenCount"` // those from the cache included
		Tools    int64 `json:"toolUsePromptTokenCount"`
		Answer   int64 `json:"candidatesTokenCount"` // without the thoughts
		Thoughts int64 `json:"thoughtsTokenCount"`
		Cached   int64 `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

// part is a piece of text, a thought, a call or a picture.
type part struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Inline *struct {
		Media string `json:"mimeType"`
		Data  []byte `json:"data"`
	} `json:"inlineData"`
}

// decoder turns messages into chunks. Everything comes whole but text and thoughts.
type decoder struct {
	*wire.Out
	dialect string
	said    int // bytes of text so far
	calls   int
	images  int
	usage   *belay.Usage
	finish  string
	message string
}

func newDecoder(out *wire.Out, dialect string) *decoder {
	out.Limit = maxHeld
	return &decoder{Out: out, dialect: dialect}
}

// maxHeld bounds the calls, signatures and pictures of an answer, in bytes.
const maxHeld = 64 << 20

// Take takes an event.
func (d *decoder) Take(p *piece, data []byte) {
	if len(p.Error) > 0 && string(p.Error) != "null" {
		d.Fail(d.End.CodedFailure(data))
		return
	}
	if b := p.Feedback; b.Blocked != "" {
		d.Fail(d.refused("the vendor refuses the request: " + b.Blocked + " " + b.Message))
		return
	}
	if u := p.Usage; u != nil && u.Prompt+u.Answer+u.Thoughts > 0 {
		d.usage = &belay.Usage{Input: u.Prompt + u.Tools, Output: u.Answer + u.Thoughts, Cached: u.Cached, Reasoning: u.Thoughts, Reported: true}
	}
	for i := range p.Candidates {
		c := &p.Candidates[i]
		if c.Index != 0 {
			continue // only one was asked for
		}
		for j := range c.Content.Parts {
			d.part(&c.Content.Parts[j])
		}
		d.finish, d.message = cmp.Or(c.Finish, d.finish), cmp.Or(c.Message, d.message)
	}
}

func (d *decoder) part(p *part) {
	d.Hold(len(p.Signature))
	switch {
	case p.Call != nil:
		d.call(p)
		return
	case p.Inline != nil:
		d.Hold(len(p.Inline.Data))
		if strings.HasPrefix(p.Inline.Media, "image/") && len(p.Inline.Data) > 0 {
			d.images++
			d.Say(model.Chunk{Image: &model.Image{Media: p.Inline.Media, Data: p.Inline.Data}})
		}
		return // its signature belongs to a picture that isn't sent back
	case p.Thought:
		if p.Text != "" {
			d.Say(model.Chunk{Reasoning: p.Text})
		}
		p.Text = ""
	}
	if p.Signature != "" {
		d.Say(model.Chunk{Echo: d.echo(echo{At: d.said, Len: len(p.Text), Signature: p.Signature})})
	}
	if d.said += len(p.Text); p.Text != "" {
		d.Say(model.Chunk{Text: p.Text})
	}
}

func (d *decoder) call(p *part) {
	d.calls++
	d.Hold(len(p.Call.Args))
	c := &model.Call{ID: fmt.Sprintf("call_%d", d.calls), Name: p.Call.Name, Args: string(p.Call.Args)}
	if c.Args == "" || c.Args == "null" {
		c.Args = "{}"
	}
	if p.Signature != "" {
		c.Echo = d.echo(echo{Signature: p.Signature})
	}
	d.Say(model.Chunk{Call: c})
}

func (d *decoder) echo(e echo) *belay.Echo {
	data, err := wire.JSON(e)
	if err != nil {
		d.Fail(err)
	}
	return &belay.Echo{By: d.dialect, Data: data}
}

// endings are the finish reasons in the runtime's words. What isn't among them
// and isn't a stop is a failure that may pass: the vendor couldn't finish, or the
// model wrote a call that can't be read.
// Source: https://ai.google.dev/api/generate-content#FinishReason, November 2026.
var endings = map[string]string{
	"STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "length",
	"SAFETY": "refused", "RECITATION": "refused", "LANGUAGE": "refused", "BLOCKLIST": "refused", "PROHIBITED_CONTENT": "refused", "SPII": "refused",
	"IMAGE_SAFETY": "refused", "IMAGE_PROHIBITED_CONTENT": "refused", "IMAGE_RECITATION": "refused",
}

// Finish yields the end. An answer that has its finish reason is whole, even if its
// stream broke off then.
func (d *decoder) Finish(err error) {
	stop, known := endings[d.finish]
	switch {
	case d.finish == "":
		d.Cut(err)
	case d.finish == "MISSING_THOUGHT_SIGNATURE":
		d.Fail(&model.Error{Class: "bad_request", Message: d.End.Clean(d.End.Name + ": the request lacks a signature. " + d.message)})
	case !known:
		d.Broken("CUT", "the model couldn't finish: %s %s", d.finish, d.message)
	case stop == "refused" && d.said+d.calls+d.images == 0:
		d.Fail(d.refused("the vendor stopped the answer: " + d.finish + " " + d.message))
	case stop == "stop" && d.calls > 0:
		d.Say(model.Chunk{Usage: d.usage, Stop: "tool_calls"})
	default:
		d.Say(model.Chunk{Usage: d.usage, Stop: stop})
	}
}

func (d *decoder) refused(what string) error {
	return &model.Error{Class: "refused", Message: d.End.Clean(d.End.Name + ": " + strings.TrimSpace(what))}
}
