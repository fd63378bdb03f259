// Package openai speaks the protocols of OpenAI, which many servers imitate:
// Responses and Chat Completions.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// Chat speaks Chat Completions.
// Source: https://platform.openai.com/docs/api-reference/chat, November 2026.
type Chat struct{ wire.Service }

var (
	_ model.Provider = (*Chat)(nil)
	_ model.Able     = (*Chat)(nil)
)

// imageModels begin the names of the vendor's models that take pictures. What
// isn't named here takes none: a server that can't see one would only confuse.
// Source: https://platform.openai.com/docs/models, November 2026.
var imageModels = [...]string{"gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4-mini", "chatgpt-4o"}

// TakesImages reports whether a model of the vendor is known to take pictures.
func TakesImages(name string) bool {
	return slices.ContainsFunc(imageModels[:], func(p string) bool { return strings.HasPrefix(name, p) })
}

// TakesFiles reports whether a model of the vendor is known to take PDF documents.
// It shows their pages as pictures, so those are the models that take pictures.
// Source: https://platform.openai.com/docs/guides/pdf-files, November 2026.
func TakesFiles(name string) bool { return TakesImages(name) }

// chatName names the protocol; its encoding is the same for every model.
const chatName = "openai-chat"

// Stream sends one request and yields the answer as it comes.
func (p *Chat) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return wire.Stream(ctx, r, p.post, newChatDecoder)
}

func (p *Chat) post(ctx context.Context, r model.Request) (*wire.Answer, error) {
	body, err := p.body(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.Endpoint.Post(ctx, "/chat/completions", authorized(p.Endpoint.Key), body)
}

// chatChunk is one event of an answer.
type chatChunk struct {
	Choices []struct {
		Index  int       `json:"index"`
		Delta  chatDelta `json:"delta"`
		Finish string    `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// chatDelta is what a chunk adds to a message.
type chatDelta struct {
	Content chatText   `json:"content"`
	Refusal string     `json:"refusal"`
	Images  []struct { // OpenRouter
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	} `json:"images"`
	Reasoning string `json:"reasoning"`         // OpenRouter, vLLM
	Thinking  string `json:"reasoning_content"` // DeepSeek, llama.cpp
	Calls     []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"arguments"` // text; some send an object
		} `json:"function"`
	} `json:"tool_calls"`
}

// chatUsage counts tokens.
type chatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
		Write  int64 `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// chatDecoder turns events into chunks. Calls come in pieces and are yielded
// whole, at the end, in the order in which they began.
type chatDecoder struct {
	*wire.Out
	calls   []*chatCall
	usage   *belay.Usage
	finish  string
	refused bool
}

func newChatDecoder(out *wire.Out) wire.Decoder[chatChunk] {
	out.Limit = maxArgs
	return &chatDecoder{Out: out}
}

type chatCall struct {
	index    int
	id, name string
	args     strings.Builder
}

// maxArgs bounds the arguments of an answer's calls, in bytes.
const maxArgs = 8 << 20

// Take takes an event.
func (d *chatDecoder) Take(c *chatChunk, data []byte) {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		d.Fail(d.End.CodedFailure(data))
		return
	}
	if u := c.Usage; u != nil && (u.Prompt > 0 || u.Completion > 0) {
		d.usage = &belay.Usage{Input: u.Prompt, Output: u.Completion, Cached: u.Details.Cached, CacheWrite: u.Details.Write, Reasoning: u.Output.Reasoning, Reported: true}
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 {
			continue // only one was asked for
		}
		if s := cmp.Or(ch.Delta.Reasoning, ch.Delta.Thinking, ch.Delta.Content.thought); s != "" && !d.Say(model.Chunk{Reasoning: s}) {
			return
		}
		if s := ch.Delta.Content.text + ch.Delta.Refusal; s != "" && !d.Say(model.Chunk{Text: s}) {
			return
		}
		if ch.Delta.Refusal != "" {
			d.refused = true
		}
		for _, img := range ch.Delta.Images {
			if !d.linked(img.Image.URL) {
				return
			}
		}
		for j := range ch.Delta.Calls {
			call := &ch.Delta.Calls[j]
			d.call(j, call.Index, call.ID, call.Function.Name, call.Function.Args)
		}
		if ch.Finish != "" {
			d.finish = ch.Finish
		}
	}
}

// chatText is text that comes as such or, where there is reasoning too, as a
// list of parts. Source: https://docs.mistral.ai/capabilities/reasoning,
// November 2026.
type chatText struct{ text, thought string }

// UnmarshalJSON reads both forms; what is neither has no text.
func (c *chatText) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		if b[0] == '"' {
			return json.Unmarshal(b, &c.text)
		}
		return nil
	}
	var parts []struct {
		Text     string   `json:"text"`
		Thinking chatText `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text += p.Text
		c.thought += p.Thinking.text
	}
	return nil
}

// linked yields a picture that came as a data URL. Another address isn't
// fetched: an answer doesn't choose what is connected to.
func (d *chatDecoder) linked(url string) bool {
	media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(media, "image/") {
		return true
	}
	return picture(d.Out, media, data)
}

// call adds a piece of a call. Servers differ: some leave the index out, some
// repeat the id with each piece, some send a new call under an index that was
// used, some send the arguments as an object.
func (d *chatDecoder) call(nth int, index *int, id, name string, args json.RawMessage) {
	at := nth
	if index != nil {
		at = *index
	}
	c := d.find(at, index != nil, id, name)
	if name != "" && c.name == "" {
		c.name = name
	}
	var s string
	if json.Unmarshal(args, &s) != nil && len(args) > 0 && string(args) != "null" {
		s = string(args)
	}
	c.args.WriteString(s)
	d.Hold(len(s) + len(name))
}

func (d *chatDecoder) find(index int, named bool, id, name string) *chatCall {
	for i := len(d.calls) - 1; i >= 0; i-- {
		c := d.calls[i]
		same := c.index == index && (id == "" || c.id == "" || c.id == id)
		if !named && id == "" && name != "" {
			same = false // a name without index and id begins a call
		}
		if same {
			if c.id == "" {
				c.id = id
			}
			return c
		}
	}
	c := &chatCall{index: index, id: id}
	d.calls = append(d.calls, c)
	return c
}

// Finish yields the calls and the end. A stream that has its finish is whole, even
// if it broke off before its usual last event, as with some servers.
func (d *chatDecoder) Finish(err error) {
	if d.finish == "" || d.finish == "error" { // OpenRouter says error when the far end broke off
		d.Cut(err)
		return
	}
	for i, c := range d.calls {
		if !d.Say(model.Chunk{Call: &model.Call{ID: d.CallID(c.id, i+1), Name: c.name, Args: argsIn(&c.args, d.finish == "length")}}) {
			return
		}
	}
	d.Say(model.Chunk{Usage: d.usage, Stop: d.stop()})
}

// stop is the finish reason in the runtime's words. Some servers say stop
// although there are calls.
func (d *chatDecoder) stop() string {
	switch {
	case d.refused || d.finish == "content_filter":
		return "refused"
	case d.finish == "length":
		return "length"
	case len(d.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}
