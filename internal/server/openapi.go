package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/access"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
)

// The description of the API is made of the same table and types that answer.

type (
	apiDocument struct {
		OpenAPI    string              `json:"openapi"`
		Info       apiInfo             `json:"info"`
		Servers    []apiServer         `json:"servers"`
		Security   []apiSecurity       `json:"security"`
		Tags       []apiTag            `json:"tags"`
		Paths      map[string]*apiPath `json:"paths"`
		Components apiComponents       `json:"components"`

		Unavailable map[string]string `json:"x-unavailable"` // commands and read models that this build hasn't, and what they wait for
	}
	apiInfo struct {
		Title       string     `json:"title"`
		Version     string     `json:"version"`
		Description string     `json:"description"`
		License     apiLicense `json:"license"`
		Contact     apiContact `json:"contact"`
	}
	apiLicense struct {
		Name       string `json:"name"`
		Identifier string `json:"identifier"`
	}
	apiContact struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	apiServer struct {
		URL         string `json:"url"`
		Description string `json:"description"`
	}
	apiTag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	apiSecurity struct {
		Bearer *[]string `json:"bearer,omitempty"`
	}
	apiPath struct {
		Get  *apiOperation `json:"get,omitempty"`
		Post *apiOperation `json:"post,omitempty"`
	}
	apiOperation struct {
		ID          string                  `json:"operationId"`
		Tags        []string                `json:"tags"`
		Summary     string                  `json:"summary"`
		Description string                  `json:"description"`
		Security    *[]apiSecurity          `json:"security,omitempty"`
		Parameters  []apiParameter          `json:"parameters,omitempty"`
		Body        *apiBody                `json:"requestBody,omitempty"`
		Responses   map[string]*apiResponse `json:"responses"`
		Scope       string                  `json:"x-scope,omitempty"`
	}
	apiParameter struct {
		Name        string             `json:"name"`
		In          string             `json:"in"`
		Required    bool               `json:"required,omitempty"`
		Description string             `json:"description"`
		Schema      *jsonschema.Schema `json:"schema"`
	}
	apiBody struct {
		Required bool                `json:"required"`
		Content  map[string]apiMedia `json:"content"`
	}
	apiResponse struct {
		Ref         string              `json:"$ref,omitempty"`
		Description string              `json:"description,omitempty"`
		Content     map[string]apiMedia `json:"content,omitempty"`
	}
	apiMedia struct {
		Schema *jsonschema.Schema `json:"schema"`
	}
	apiComponents struct {
		Schemas         map[string]*jsonschema.Schema `json:"schemas"`
		Responses       map[string]*apiResponse       `json:"responses"`
		SecuritySchemes map[string]apiScheme          `json:"securitySchemes"`
	}
	apiScheme struct {
		Type        string `json:"type"`
		Scheme      string `json:"scheme"`
		Description string `json:"description"`
	}
)

// OpenAPI is the description of the API as JSON.
func OpenAPI(commands []app.Command, reads []app.Read) ([]byte, error) {
	named := schemas{map[string]*jsonschema.Schema{}, map[string]reflect.Type{}}
	b := &apiBuilder{schemas: named, doc: apiDocument{
		OpenAPI: "3.1.0",
		Info: apiInfo{Title: "Belay", Version: "v1", Description: "Commands, reads and streams of an agent runtime.",
			License: apiLicense{"Apache-2.0", "Apache-2.0"}, Contact: apiContact{"Belay", "https://github.com/belay-run/belay"}},
		Servers:  []apiServer{{"http://127.0.0.1:4260", "belay serve, as it listens by default"}},
		Security: []apiSecurity{{Bearer: &[]string{}}},
		Tags: []apiTag{{"commands", "The control plane: what changes sessions, and what is asked about them."}, {"runs", "A message in, a run to look at."},
			{"approvals", "What agents ask people."}, {"reads", "Streams and views of what happened."}, {"operation", "How the server itself is."}},
		Paths: map[string]*apiPath{}, Unavailable: map[string]string{},
		Components: apiComponents{Schemas: named.named, Responses: map[string]*apiResponse{}, SecuritySchemes: map[string]apiScheme{
			"bearer": {"http", "bearer", "A token that belay token create made. Its role says what it may do."}}},
	}}
	if err := b.refusals(); err != nil {
		return nil, err
	}
	for _, row := range slices.Concat(b.commands(commands), otherRoutes(), readRoutes(), b.table(reads)) {
		if err := b.add(row); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(b.doc)
	return out.Bytes(), err
}

type apiBuilder struct {
	doc     apiDocument
	schemas schemas
}

func (b *apiBuilder) media(t reflect.Type, kind string) (map[string]apiMedia, error) {
	s, err := b.schemas.ref(t)
	return map[string]apiMedia{kind: {s}}, err
}

// refusals are the answers that every operation refers to.
func (b *apiBuilder) refusals() error {
	bad, err := b.media(reflect.TypeFor[input.Problem](), input.ProblemMedia)
	b.doc.Components.Responses["Refused"] = &apiResponse{Description: "The request can't be done; code and field say why.", Content: bad}
	b.doc.Components.Responses["Failed"] = &apiResponse{Description: "The server can't do it, or not now.", Content: bad}
	return err
}

// apiRow is what differs between operations.
type apiRow struct {
	path, id, tag, doc string
	scope              auth.Scope   // empty: it needs no token
	in                 reflect.Type // nil: it is asked with GET
	out                reflect.Type
	status             string       // of answer; 200
	answer             *apiResponse // where out is nil
	parameters         []apiParameter
}

// add describes an operation.
func (b *apiBuilder) add(r apiRow) error {
	summary, _, _ := strings.Cut(strings.TrimSuffix(r.doc, "."), ":")
	op := &apiOperation{ID: r.id, Tags: []string{r.tag}, Summary: summary, Description: r.doc, Parameters: r.parameters, Scope: string(r.scope),
		Responses: map[string]*apiResponse{"4XX": {Ref: "#/components/responses/Refused"}, "5XX": {Ref: "#/components/responses/Failed"}, cmp.Or(r.status, "200"): r.answer}}
	if r.scope == "" {
		op.Security = &[]apiSecurity{{}}
	}
	if r.out != nil {
		good, err := b.media(r.out, "application/json")
		if err != nil {
			return err
		}
		op.Responses["200"] = &apiResponse{Description: "The result.", Content: good}
	}
	at := b.doc.Paths[r.path]
	if at == nil {
		at = &apiPath{}
		b.doc.Paths[r.path] = at
	}
	if r.in == nil {
		at.Get = op
		return nil
	}
	in, err := b.media(r.in, "application/json")
	op.Body, at.Post = &apiBody{Required: true, Content: in}, op
	return err
}

var (
	aText        = &jsonschema.Schema{Type: "string"}
	keyParameter = apiParameter{Name: "Idempotency-Key", In: "header", Description: "Told twice under one key, a command is done once.", Schema: &jsonschema.Schema{Type: "string", MaxLength: new(128)}}
)

// document is an answer that no type describes.
func document(what, kind string, of *jsonschema.Schema) *apiResponse {
	return &apiResponse{Description: what, Content: map[string]apiMedia{kind: {of}}}
}

// inPath is the parameter of a path that names what is meant.
func inPath(name, what string) apiParameter {
	return apiParameter{Name: name, In: "path", Required: true, Description: what, Schema: aText}
}

// commands describes the table of commands.
func (b *apiBuilder) commands(table []app.Command) (rows []apiRow) {
	for _, c := range table {
		if c.Later != "" {
			b.doc.Unavailable[c.Name] = c.Later
			continue
		}
		row := apiRow{path: "/v1/commands/" + c.Name, id: c.Name, tag: "commands", doc: c.Doc, scope: c.Scope, in: c.In, out: c.Out}
		if c.Mutates {
			row.parameters = []apiParameter{keyParameter}
		}
		rows = append(rows, row)
	}
	return rows
}

// table describes the table of reads.
func (b *apiBuilder) table(reads []app.Read) (rows []apiRow) {
	for _, r := range reads {
		if r.Later != "" {
			b.doc.Unavailable[r.Name] = r.Later
			continue
		}
		row := apiRow{path: r.Route(), id: r.Name, tag: r.Tag, doc: r.Doc, scope: auth.Read, out: r.Out}
		if r.Out == nil {
			row.answer = document("The document.", "*/*", &jsonschema.Schema{Type: "string", Format: "binary"})
		}
		switch {
		case r.Of != "":
			row.tag, row.parameters = "reads", []apiParameter{inPath("id", "Whose.")}
		case r.ID != "":
			row.parameters = []apiParameter{inPath("id", r.ID)}
		}
		for _, p := range append(slices.Clone(r.Query), read.After) {
			row.parameters = append(row.parameters, queryParameter(p))
		}
		rows = append(rows, row)
	}
	return rows
}

// otherRoutes describes the routes besides the tables, and besides what package read answers.
func otherRoutes() []apiRow {
	_, attach, _ := strings.Cut(attachRoute, " ")
	return []apiRow{
		{path: "/v1/runs", id: "createRun", tag: "runs", doc: "Give a session that a key names something to do.", scope: auth.Work,
			in: reflect.TypeFor[CreateRun](), out: reflect.TypeFor[app.Result](), parameters: []apiParameter{keyParameter}},
		{path: loginRoute, id: "login", tag: "operation", doc: "Trade a code that belay console printed for a token.", in: reflect.TypeFor[Login](), out: reflect.TypeFor[access.TokenCreated]()},
		{path: "/v1/openapi.json", id: "getOpenAPI", tag: "operation", doc: "This description.", scope: auth.Read, answer: document("The document.", "application/json", &jsonschema.Schema{Type: "object"})},
		{path: "/metrics", id: "getMetrics", tag: "operation", doc: "Figures in Prometheus' text format.", scope: auth.Read, answer: document("The document.", "text/plain", aText)},
		{path: "/mcp", id: "sendMcp", tag: "operation", doc: "Send a message of the Model Context Protocol, over streamable HTTP.", scope: auth.Read, in: reflect.TypeFor[MCPMessage](), answer: document("Messages of the protocol.", "text/event-stream", aText)},
		{path: "/mcp", id: "followMcp", tag: "operation", doc: "Follow what the server sends in a session of the Model Context Protocol.", scope: auth.Read, answer: document("Messages of the protocol.", "text/event-stream", aText)},
		{path: "/healthz", id: "getHealth", tag: "operation", doc: "Tell that the process lives.", out: reflect.TypeFor[Health]()},
		{path: "/readyz", id: "getReadiness", tag: "operation", doc: "Tell whether the server takes work.", out: reflect.TypeFor[Health]()},
		{path: attach, id: "attach", tag: "reads", doc: "Follow a program's output over WebSocket, and type on it.", scope: auth.Read, status: "101",
			answer: &apiResponse{Description: "What follows are frames of " + client.AttachProtocol + ": binary ones are output and input, text ones are JSON. docs/processes.md has them."},
			parameters: []apiParameter{
				inPath("id", "The session."), inPath("process", "The program."),
				{Name: "offset", In: "query", Description: "The first byte of the output that is sent; a negative number counts from what there is.", Schema: &jsonschema.Schema{Type: "integer"}},
				{Name: "readOnly", In: "query", Description: "Take no input from this client.", Schema: &jsonschema.Schema{Type: "boolean"}},
				{Name: "Sec-WebSocket-Protocol", In: "header", Required: true, Description: "What the client offers to speak: " + client.AttachProtocol + ", and " + bearerProtocol + "TOKEN where it can't send an Authorization.", Schema: aText},
			}},
	}
}

// readRoutes describes what package read answers.
func readRoutes() (rows []apiRow) {
	for _, r := range (&read.Reads{}).Routes() {
		path := r.Path()
		row := apiRow{path: path, id: r.Name(), tag: "reads", doc: r.Summary, scope: auth.Read, out: r.Out}
		if strings.Contains(path, "{id}") {
			row.parameters = append(row.parameters, inPath("id", "Whose."))
		}
		for _, p := range r.Query {
			row.parameters = append(row.parameters, queryParameter(p))
		}
		if r.Stream() {
			row.answer = document("What there is to read.", "text/event-stream", aText)
			row.parameters = append(row.parameters,
				apiParameter{Name: app.ChannelHeader, In: "header", Description: "The channel that follows; it needs not be one.", Schema: aText},
				apiParameter{Name: "Last-Event-ID", In: "header", Description: "The id of the last event that was seen; the stream continues after it.", Schema: aText})
		}
		rows = append(rows, row)
	}
	return rows
}

// queryParameter describes what a query may say.
func queryParameter(p read.Param) apiParameter {
	of := &jsonschema.Schema{Type: "string"}
	if p.Whole {
		of.Type = "integer"
	}
	for _, v := range p.OneOf {
		of.Enum = append(of.Enum, v)
	}
	if p.Many {
		of = &jsonschema.Schema{Type: "array", Items: of}
	}
	return apiParameter{Name: p.Name, In: "query", Required: p.Required, Description: p.Doc, Schema: of}
}

func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	doc, err := s.described()
	if err != nil {
		input.WriteProblem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(doc) //nolint:errcheck // the client is gone
}
