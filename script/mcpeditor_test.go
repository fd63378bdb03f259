package script

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// editorMain is an MCP client, for scripts: it starts belay mcp serve, calls a tool and
// prints the answer. editor [-answer TEXT] [-protocol VERSION] [-approver] TOOL JSON.
// With -answer it shows forms, and fills their field. Its exit is 1 where the answer is
// an error.
func editorMain() {
	e := editor{out: os.Stdout}
	flags := flag.NewFlagSet("editor", flag.ExitOnError)
	flags.StringVar(&e.answer, "answer", "", "")
	flags.StringVar(&e.protocol, "protocol", "", "")
	approver := flags.Bool("approver", false, "")
	if flags.Parse(os.Args[1:]); flags.NArg() != 2 { //nolint:errcheck // it exits
		fmt.Fprintln(os.Stderr, "usage: editor [-answer TEXT] [-protocol VERSION] [-approver] TOOL JSON")
		os.Exit(2)
	}
	e.argv = []string{"belay", "mcp", "serve"}
	if *approver {
		e.argv = append(e.argv, "--approver")
	}
	good, err := e.call(flags.Arg(0), flags.Arg(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// editor is a client of an MCP server that it starts.
type editor struct {
	argv     []string
	answer   string // to what it is asked; empty: it can't be asked
	protocol string // empty: the newest
	out      *os.File
}

// call calls a tool and reports whether it went well.
func (e *editor) call(tool, args string) (good bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		fmt.Fprintf(os.Stderr, "progress: %s\n", r.Params.Message)
	}}
	if e.answer != "" {
		o.ElicitationHandler = e.fill
	}
	cmd := exec.CommandContext(ctx, e.argv[0], e.argv[1:]...)
	cmd.Stderr = os.Stderr
	c, err := sdk.NewClient(&sdk.Implementation{Name: "editor", Version: "1"}, o).
		Connect(ctx, &sdk.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, &sdk.ClientSessionOptions{ProtocolVersion: e.protocol})
	if err != nil {
		return false, err
	}
	fmt.Fprintf(os.Stderr, "protocol: %s\n", c.InitializeResult().ProtocolVersion)
	p := &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)}
	p.SetProgressToken("it")
	res, err := c.CallTool(ctx, p)
	if err != nil {
		c.Close() //nolint:errcheck // the call's error says more
		return false, err
	}
	for _, part := range res.Content {
		if t, ok := part.(*sdk.TextContent); ok {
			fmt.Fprintln(e.out, t.Text)
		}
	}
	return !res.IsError, c.Close()
}

// fill fills the field of a form.
func (e *editor) fill(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	fmt.Fprintf(os.Stderr, "asked: %s\n", r.Params.Message)
	schema, err := json.Marshal(r.Params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	field := "decision"
	if strings.Contains(string(schema), `"answer"`) {
		field = "answer"
	}
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{field: e.answer}}, nil
}
