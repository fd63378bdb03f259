package tool

import (
	"context"
	_ "embed"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
)

// ReadName is the tool that reads what a conversation has in part only.
const ReadName = "context_read"

//go:embed contextread.md
var contextReadDoc string

type contextReadArgs struct {
	Source string `json:"source" jsonschema:"its digest"`
	Chunk  int    `json:"chunk,omitempty" jsonschema:"its number"`
	Offset int    `json:"offset,omitempty" jsonschema:"bytes to skip"`
	Lines  string `json:"lines,omitempty" jsonschema:"like 10-80"`
	Query  string `json:"query,omitempty" jsonschema:"words"`
}

// readTool reads what the conversation has in part only. What it shows was the thread's
// already: it makes nothing more or less trusted.
func readTool() Tool {
	spec := Spec{Name: ReadName, Doc: strings.TrimSpace(contextReadDoc), Effect: belay.Pure, ReadOnly: true, Access: belay.Read, Capabilities: []string{CapReading},
		OutputLimit: 24 << 10}
	return New(spec, func(ctx context.Context, c Call, in contextReadArgs) (Result, error) {
		q := Question{Chunk: in.Chunk, Offset: in.Offset, Words: in.Query}
		if in.Lines != "" {
			from, to, _ := strings.Cut(in.Lines, "-")
			var err, bad error
			q.Line, err = strconv.Atoi(strings.TrimSpace(from))
			if to != "" {
				q.Until, bad = strconv.Atoi(strings.TrimSpace(to))
			}
			if err != nil || bad != nil || q.Line < 1 || q.Until < 0 {
				return Result{}, Failf(BadArguments, CodeBadArguments, "lines is a number or two with - between them, not %q", shorten(in.Lines))
			}
		}
		if c.Reading == nil {
			return Result{Text: "nothing was shown in part"}, nil
		}
		text, err := c.Reading.Answer(ctx, strings.TrimSpace(in.Source), q)
		return Result{Text: text}, err
	})
}
