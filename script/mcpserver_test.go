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
	if err := goodServer(strings.TrimPrefix(how, "new-")).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
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
	if how == "library" {
		addLibrary(s)
	}
	//lint:ignore SA1019 servers may still ask
	wants := map[string]sdk.InputRequest{"roots": &sdk.ListRootsParams{}, "samples": &sdk.CreateMessageParams{MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "hi, model"}}}}}[how]
	if wants != nil {
		sdk.AddTool(s, &sdk.Tool{Name: "want"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			if got := r.Params.InputResponses["it"]; got != nil {
				b, err := json.Marshal(got)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "got " + string(b)}}}, nil, err
			}
			return &sdk.CallToolResult{RequestState: "x", InputRequests: sdk.InputRequestMap{"it": wants}}, nil, nil
		})
	}
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

// addLibrary gives a server resources and prompts.
func addLibrary(s *sdk.Server) {
	add := func(r sdk.Resource, text string, blob []byte) {
		s.AddResource(&r, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.URI, MIMEType: r.MIMEType, Text: text, Blob: blob}}}, nil
		})
	}
	var b strings.Builder
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		panic(err)
	}
	add(sdk.Resource{URI: "memo://today", Name: "today", Description: "What happens today.", MIMEType: "text/plain"}, "tea at four", nil)
	add(sdk.Resource{URI: "memo://map", Name: "map", MIMEType: "image/png"}, "", []byte(b.String()))
	add(sdk.Resource{URI: "memo://disk", Name: "disk", MIMEType: "application/x-disk"}, "", []byte("\x00\x01\x02"))
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "memo://days/{day}", Name: "day"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		if a, ok := r.Params.InputResponses["who"].(*sdk.ElicitResult); ok {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: fmt.Sprintf("a day of %v", a.Content["name"])}}}, nil
		}
		return &sdk.ReadResourceResult{RequestState: "day", InputRequests: sdk.InputRequestMap{"who": &sdk.ElicitParams{Mode: "form", Message: "Whose day?", RequestedSchema: json.RawMessage(whoForm)}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Description: "Greet someone.", Arguments: []*sdk.PromptArgument{{Name: "name", Description: "of the person", Required: true}, {Name: "tone"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: "Greet " + r.Params.Arguments["name"] + " " + r.Params.Arguments["tone"]}},
				{Role: "user", Content: &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "memo://manners", Text: "bow first"}}},
			}}, nil
		})
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

// asksBack asks its client something while it works on a call, in the way of older
// protocols, and says what it was told.
func asksBack(request string) {
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
			Error  json.RawMessage `json:"error"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if m.Method != "" {
			for _, l := range greets(oneTool, func(id json.RawMessage) []string {
				call = id
				return []string{`{"jsonrpc":"2.0","id":"q1",` + request + `}`}
			})(m.ID, m.Method) {
				fmt.Println(l)
			}
			continue
		}
		said, err := json.Marshal("answered: " + string(m.Result) + string(m.Error))
		if err == nil {
			fmt.Println(reply(call, `{"content":[{"type":"text","text":`+string(said)+`}]}`))
		}
	}
}

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
	"promises": func() {
		raw(greets(`[{"name":"do","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}}]`,
			func(id json.RawMessage) []string {
				return []string{reply(id, `{"content":[{"type":"text","text":"counted"}],"structuredContent":{"n":"three"}}`)}
			}))
	},
	"asks": func() {
		asksBack(`"method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":` + whoForm + `}`)
	},
	"roots": func() { asksBack(`"method":"roots/list"`) },
	"samples": func() {
		asksBack(`"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi, model"}}],"maxTokens":10}`)
	},
	"nulls": func() { // where there is to be something there is nothing
		raw(func(id json.RawMessage, method string) []string {
			switch method {
			case "initialize":
				return []string{reply(id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"nulls","version":"0"}}`)}
			case "prompts/list":
				return []string{reply(id, `{"prompts":[null,{"name":"hello"}]}`)}
			case "prompts/get":
				return []string{reply(id, `{"messages":[null,{"role":"user","content":{"type":"text","text":"hello"}}]}`)}
			case "resources/list":
				return []string{reply(id, `{"resources":[null,{"uri":"a:b","name":"b"}]}`)}
			case "resources/templates/list":
				return []string{reply(id, `{"resourceTemplates":[null]}`)}
			case "resources/read":
				return []string{reply(id, `{"contents":[null]}`)}
			}
			return greets(`[null,`+oneTool[1:], func(id json.RawMessage) (lines []string) {
				for i, asks := range []string{`elicitation/create"`, `elicitation/create","params":null`, `sampling/createMessage","params":null`, `roots/list","params":null`, `ping","params":null`} {
					lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"%s}`, i, asks))
				}
				for _, says := range []string{"progress", "message", "tools/list_changed", "cancelled", "elicitation/complete", "resources/updated"} {
					lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/`+says+`","params":null}`)
				}
				return append(lines, reply(id, done))
			})(id, method)
		})
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
	"renames": func() { // from its second process on
		name := "do"
		if os.Mkdir("renamed", 0o755) != nil {
			name = "undo"
		}
		raw(greets(`[{"name":"`+name+`","inputSchema":{"type":"object"}}]`, func(id json.RawMessage) []string { return []string{reply(id, done)} }))
	},
	"grows": func() { // it answers a call when it was asked anew what it has
		grown, asked := false, map[string]bool{}
		var call json.RawMessage
		raw(func(id json.RawMessage, method string) (lines []string) {
			asked[method] = grown
			switch {
			case method == "initialize":
				return []string{reply(id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true}},"serverInfo":{"name":"grows","version":"0"}}`)}
			case method == "prompts/list" && grown:
				lines = []string{reply(id, `{"prompts":[{"name":"bloom"}]}`)}
			case method == "prompts/list":
				lines = []string{reply(id, `{"prompts":[]}`)}
			case method == "tools/call":
				grown, call = true, id
				return []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`}
			case method == "tools/list" && grown:
				lines = []string{reply(id, `{"tools":[{"name":"do","description":"Do it.","inputSchema":{"type":"object"}},{"name":"more","inputSchema":{"type":"object"}}]}`)}
			default:
				return greets(oneTool, nil)(id, method)
			}
			if call != nil && asked["tools/list"] && asked["prompts/list"] {
				lines, call = append(lines, reply(call, done)), nil
			}
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
