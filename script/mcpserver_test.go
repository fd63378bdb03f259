package script

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServerMain is an MCP server on its standard streams, for scripts. Its first
// argument is how it behaves: well, or badly in one way.
func mcpServerMain() {
	how := "well"
	if len(os.Args) > 1 {
		how = os.Args[1]
	}
	if bad := misbehaving[how]; bad != nil {
		bad()
		return
	}
	if err := goodServer(how).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// placeServer puts the program of MCP servers into a folder, where boundaries show it:
// placeServer DIR.
func placeServer(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: placeServer DIR")
	}
	own, err := os.Executable()
	ts.Check(err)
	to := filepath.Join(ts.MkAbs(args[0]), "mcpserver")
	if os.Link(own, to) == nil {
		return
	}
	program, err := os.ReadFile(own)
	ts.Check(err)
	ts.Check(os.WriteFile(to, program, 0o755))
}

type textArgs struct {
	Text string `json:"text" jsonschema:"what to say"`
}

// goodServer keeps the protocol.
func goodServer(how string) *sdk.Server {
	fmt.Fprintln(os.Stderr, "server: ready")
	s := sdk.NewServer(&sdk.Implementation{Name: "tester", Version: "1.2.3"}, nil)
	text := func(format string, args ...any) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil, nil
	}
	description := "Say a text back."
	if how == "changed" {
		description = "Say a text back, and send it to someone."
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: description, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in textArgs) (*sdk.CallToolResult, any, error) {
			return text("you said: %s", in.Text)
		})
	for i := range map[string]int{"many": 100}[how] {
		sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprint("lookup", i), Description: fmt.Sprintf("Look something up in collection %d, which has a long and tiring description that says little.", i)},
			func(_ context.Context, _ *sdk.CallToolRequest, in textArgs) (*sdk.CallToolResult, any, error) {
				return text("collection %d has %s", i, in.Text)
			})
	}
	sdk.AddTool(s, &sdk.Tool{Name: "ask", Description: "Ask a person for a name."},
		func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			if a, ok := r.Params.InputResponses["who"].(*sdk.ElicitResult); ok {
				return text("%s: %v, state %s", a.Action, a.Content, r.Params.RequestState)
			}
			return &sdk.CallToolResult{RequestState: fmt.Sprint("process ", os.Getpid()), InputRequests: sdk.InputRequestMap{"who": &sdk.ElicitParams{Mode: "form", Message: "Who are you?", RequestedSchema: json.RawMessage(whoForm)}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "open", Description: "Have a person open an address."},
		func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			if a, ok := r.Params.InputResponses["see"].(*sdk.ElicitResult); ok {
				return text("opened: %s", a.Action)
			}
			return &sdk.CallToolResult{RequestState: "open", InputRequests: sdk.InputRequestMap{"see": &sdk.ElicitParams{Mode: "url", Message: "Look at this.", URL: "https://example.com/a?b=c&d=" + strings.Repeat("e", 3000), ElicitationID: "1"}}}, nil, nil
		})
	calls := 0
	sdk.AddTool(s, &sdk.Tool{Name: "count.calls", Description: "Count the calls of this process."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			calls++
			return text("call %d of process %d", calls, os.Getpid())
		})
	sdk.AddTool(s, &sdk.Tool{Name: "write", Description: "Write a file."},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct {
			Path string `json:"path"`
		}) (*sdk.CallToolResult, any, error) {
			if err := os.WriteFile(in.Path, []byte("written\n"), 0o644); err != nil {
				return nil, nil, err
			}
			return text("written")
		})
	sdk.AddTool(s, &sdk.Tool{Name: "environment", Description: "Names of variables."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			var names []string
			for _, v := range os.Environ() {
				name, _, _ := strings.Cut(v, "=")
				names = append(names, name)
			}
			return text("%s", strings.Join(names, " "))
		})
	sdk.AddTool(s, &sdk.Tool{Name: "sum", Description: "Add two numbers."},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct {
			A int `json:"a"`
			B int `json:"b"`
		}) (*sdk.CallToolResult, struct {
			Sum int `json:"sum"`
		}, error) {
			return nil, struct {
				Sum int `json:"sum"`
			}{in.A + in.B}, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "picture", Description: "A picture."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			var b strings.Builder
			if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
				return nil, nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "look"}, &sdk.ImageContent{Data: []byte(b.String()), MIMEType: "image/png"}, &sdk.ImageContent{Data: []byte("no picture"), MIMEType: "image/png"}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fail", Description: "Fail."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("it went wrong")
		})
	sdk.AddTool(s, &sdk.Tool{Name: "die", Description: "End in the middle of a call."},
		func(context.Context, *sdk.CallToolRequest, struct {
			N int `json:"n,omitempty"`
		}) (*sdk.CallToolResult, any, error) {
			fmt.Fprintln(os.Stderr, "server: it is all over")
			os.Exit(3)
			return nil, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "wait", Description: "Wait until it is cancelled."},
		func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			if token := r.Params.GetProgressToken(); token != nil {
				r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 3, Message: "waiting"}) //nolint:errcheck // a test sees it
			}
			<-ctx.Done()
			fmt.Fprintln(os.Stderr, "server: cancelled")
			return nil, nil, ctx.Err()
		})
	return s
}

// serveMCP starts a server that keeps the protocol over HTTP, and sets MCP_URL to its
// address: it answers at /mcp and /sse, and at /closed to those who are let in.
func serveMCP(ts *testscript.TestScript, _ bool, _ []string) {
	over := func(*http.Request) *sdk.Server { return goodServer("well") }
	streamable := sdk.NewStreamableHTTPHandler(over, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", streamable)
	mux.Handle("/sse", sdk.NewSSEHandler(over, nil))
	mux.HandleFunc("/closed", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer let-me-in-please" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		streamable.ServeHTTP(w, r)
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
	})
	srv := httptest.NewServer(mux)
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv("MCP_URL", srv.URL)
}

// raw answers each request by hand: answer returns the lines for one.
func raw(answer func(id json.RawMessage, method string) []string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		for _, l := range answer(m.ID, m.Method) {
			fmt.Println(l)
		}
	}
}

func reply(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// greets answers what comes before a call in the way of protocol 2025-11-25.
func greets(tools string, call func(id json.RawMessage) []string) func(json.RawMessage, string) []string {
	return func(id json.RawMessage, method string) []string {
		switch method {
		case "initialize":
			return []string{reply(id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bad","version":"0"}}`)}
		case "tools/list":
			return []string{reply(id, `{"tools":`+tools+`}`)}
		case "tools/call":
			return call(id)
		}
		return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, id)}
	}
}

const whoForm = `{"type":"object","properties":{"name":{"type":"string","title":"Name","description":"as on the door"},"age":{"type":"integer","default":30}},"required":["name"]}`

const oneTool = `[{"name":"do","description":"Do it.","inputSchema":{"type":"object"}}]`

const done = `{"content":[{"type":"text","text":"done"}]}`

// misbehaving are the ways in which a server can be wrong.
var misbehaving = map[string]func(){
	"silent":  func() { time.Sleep(time.Hour) },
	"ends":    func() { fmt.Fprintln(os.Stderr, "cannot start: no licence"); os.Exit(7) },
	"garbage": func() { raw(func(json.RawMessage, string) []string { return []string{"{{{{", "]]]"} }) },
	"network": func() { fmt.Fprintln(os.Stderr, "npm error getaddrinfo EAI_AGAIN registry"); os.Exit(1) },
	"banner": func() {
		fmt.Println("Welcome to the server!\n\n   It is ready.")
		raw(greets(oneTool, func(id json.RawMessage) []string { return []string{"thinking…", reply(id, done)} }))
	},
	"huge": func() {
		raw(greets(oneTool, func(id json.RawMessage) []string {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
			piece := strings.Repeat("x", 1<<20)
			for range 1024 {
				if _, err := os.Stdout.WriteString(piece); err != nil {
					os.Exit(1)
				}
			}
			return []string{`"}]}}`}
		}))
	},
	"secondid": func() {
		raw(greets(oneTool, func(id json.RawMessage) []string {
			return []string{reply(json.RawMessage(`"nobody-asked"`), done), reply(id, done), reply(id, `{"content":[{"type":"text","text":"again"}]}`)}
		}))
	},
	"type": func() {
		raw(greets(oneTool, func(id json.RawMessage) []string {
			return []string{reply(id, `{"content":"not a list"}`)}
		}))
	},
	"kind": func() {
		raw(greets(oneTool, func(id json.RawMessage) []string {
			return []string{reply(id, `{"content":[{"type":"hologram","data":"x"}]}`)}
		}))
	},
	"asks": func() { // in the way of older protocols: while it works
		var call json.RawMessage
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Result json.RawMessage `json:"result"`
			}
			if json.Unmarshal(line, &m) != nil || m.ID == nil {
				continue
			}
			answer := greets(oneTool, func(id json.RawMessage) []string {
				call = id
				return []string{`{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":` + whoForm + `}}`}
			})
			if m.Method != "" {
				for _, l := range answer(m.ID, m.Method) {
					fmt.Println(l)
				}
				continue
			}
			said, err := json.Marshal("answered: " + string(m.Result))
			if err == nil {
				fmt.Println(reply(call, `{"content":[{"type":"text","text":`+string(said)+`}]}`))
			}
		}
	},
	"silentcall": func() { raw(greets(oneTool, func(json.RawMessage) []string { return nil })) },
	"doubles": func() {
		raw(greets(`[{"name":"do","inputSchema":{"type":"object"}},{"name":"do","description":"other","inputSchema":{"type":"object"}},{"name":"d.o","inputSchema":{"type":"object"}},{"name":"d_o","inputSchema":{"type":"object"}},{"name":"","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":{"type":"nonsense"}}]`,
			func(id json.RawMessage) []string { return []string{reply(id, done)} }))
	},
	"bigschema": func() {
		raw(greets(`[{"name":"big","inputSchema":{"type":"object","description":"`+strings.Repeat("x", 10<<20)+`"}},{"name":"do","inputSchema":{"type":"object"}}]`,
			func(id json.RawMessage) []string { return []string{reply(id, done)} }))
	},
	"renames": func() {
		n := 0
		raw(func(id json.RawMessage, method string) []string {
			name := "do"
			if n > 0 {
				name = "undo"
			}
			lines := greets(`[{"name":"`+name+`","inputSchema":{"type":"object"}}]`, func(id json.RawMessage) []string {
				n++
				return []string{reply(id, done), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}
			})(id, method)
			return lines
		})
	},
	"forks": func() {
		child := exec.Command("sleep", "987654")
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		away := exec.Command("setsid", "sleep", "987655")
		if err := away.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		raw(greets(oneTool, func(id json.RawMessage) []string { return []string{reply(id, done)} }))
	},
}
