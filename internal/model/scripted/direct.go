package scripted

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// DirectName is what settings call Direct.
const DirectName = "direct"

// DirectCall is what a person asks for, as a turn's text.
type DirectCall struct {
	Tool string `json:"tool"`
	Args string `json:"args"` // as it was written: it may be broken
}

// Text is the request as a turn's text.
func (r DirectCall) Text() (string, error) { return plain(r) }

// plain is a value as JSON, without the escapes that only HTML needs: people read it.
func plain(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Direct asks for the one call that the user wrote down, and reports its result. So a
// single call goes the way of every other: decided, judged, recorded, resumed. The
// same conversation gets the same answer, in every process.
type Direct struct{}

var _ model.Provider = Direct{}

// Stream asks for the call, or repeats its result.
func (Direct) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(model.Chunk{}, err)
			return
		}
		if text, ok := answered(r.Messages); ok {
			_ = (text == "" || yield(model.Chunk{Text: text}, nil)) && yield(model.Chunk{Stop: "stop"}, nil)
			return
		}
		req, ok := asked(r.Messages)
		if !ok {
			yield(model.Chunk{}, &model.Error{Class: "bad_request", Message: "the turn's text is not a call: this session was made by belay tool call"})
			return
		}
		_ = yield(model.Chunk{Call: &model.Call{ID: "call", Name: req.Tool, Args: req.Args}}, nil) && yield(model.Chunk{Stop: "tool_calls"}, nil)
	}
}

// answered is the text of the result that the last message holds.
func answered(msgs []belay.Message) (string, bool) {
	if len(msgs) == 0 {
		return "", false
	}
	for _, p := range msgs[len(msgs)-1].Parts {
		if p.Result != nil {
			return p.Result.Text, true
		}
	}
	return "", false
}

// asked is the last call that a person wrote down.
func asked(msgs []belay.Message) (DirectCall, bool) {
	for i := len(msgs) - 1; i >= 0; i-- {
		for _, p := range msgs[i].Parts {
			var r DirectCall
			if msgs[i].Role == belay.RoleUser && json.Unmarshal([]byte(p.Text), &r) == nil && r.Tool != "" {
				return r, true
			}
		}
	}
	return DirectCall{}, false
}
