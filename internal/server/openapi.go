package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/internal/app"
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
	if err := b.commands(commands); err != nil {
		return nil, err
	}
	if err := b.plain(); err != nil {
		return nil, err
	}
	if err := b.reads(); err != nil {
		return nil, err
	}
	if err := b.table(reads); err != nil {
		return nil, err
	}
	if err := b.attach(); err != nil {
		return nil, err
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

// operation is an operation with the answers that every one has.
func (b *apiBuilder) operation(id, tag, doc, scope string, out reflect.Type) (*apiOperation, error) {
	summary, _, _ := strings.Cut(strings.TrimSuffix(doc, "."), ":")
	op := &apiOperation{ID: id, Tags: []string{tag}, Summary: summary, Description: doc, Scope: scope, Responses: map[string]*apiResponse{}}
	for code, name := range map[string]string{"4XX": "Refused", "5XX": "Failed"} {
		op.Responses[code] = &apiResponse{Ref: "#/components/responses/" + name}
	}
	if out == nil {
		return op, nil
	}
	good, err := b.media(out, "application/json")
	op.Responses["200"] = &apiResponse{Description: "The result.", Content: good}
	return op, err
}

var keyParameter = apiParameter{Name: "Idempotency-Key", In: "header", Description: "Told twice under one key, a command is done once.", Schema: &jsonschema.Schema{Type: "string", MaxLength: new(128)}}

func (b *apiBuilder) commands(table []app.Command) error {
	for _, c := range table {
		if c.Later != "" {
			b.doc.Unavailable[c.Name] = c.Later
			continue
		}
		op, err := b.operation(c.Name, "commands", c.Doc, string(c.Scope), c.Out)
		if err != nil {
			return err
		}
		if c.Mutates {
			op.Parameters = []apiParameter{keyParameter}
		}
		in, err := b.media(c.In, "application/json")
		if err != nil {
			return err
		}
		op.Body = &apiBody{Required: true, Content: in}
		b.doc.Paths["/v1/commands/"+c.Name] = &apiPath{Post: op}
	}
	return nil
}

// table describes the table of reads.
func (b *apiBuilder) table(reads []app.Read) error {
	for _, r := range reads {
		if r.Later != "" {
			b.doc.Unavailable[r.Name] = r.Later
			continue
		}
		tag, id := r.Tag, r.ID
		if r.Of != "" {
			tag, id = "reads", "Whose."
		}
		op, err := b.operation(r.Name, tag, r.Doc, string(auth.Read), r.Out)
		if err != nil {
			return err
		}
		if r.Out == nil {
			op.Responses["200"] = &apiResponse{Description: "The document.", Content: map[string]apiMedia{"*/*": {&jsonschema.Schema{Type: "string", Format: "binary"}}}}
		}
		if id != "" {
			op.Parameters = append(op.Parameters, apiParameter{Name: "id", In: "path", Required: true, Description: id, Schema: &jsonschema.Schema{Type: "string"}})
		}
		for _, p := range append(slices.Clone(r.Query), read.After) {
			op.Parameters = append(op.Parameters, queryParameter(p))
		}
		b.doc.Paths[r.Route()] = &apiPath{Get: op}
	}
	return nil
}

// plain describes the routes besides the commands.
func (b *apiBuilder) plain() error {
	for _, r := range []struct {
		path, id, tag, doc, scope string
		in, out                   reflect.Type
		parameters                []apiParameter
		kind                      string
	}{
		{"/v1/runs", "createRun", "runs", "Give a session that a key names something to do.", "work", reflect.TypeFor[CreateRun](), reflect.TypeFor[app.Result](), []apiParameter{keyParameter}, ""},
		{"/v1/openapi.json", "getOpenAPI", "operation", "This description.", "read", nil, nil, nil, "application/json"},
		{"/metrics", "getMetrics", "operation", "Figures in Prometheus' text format.", "read", nil, nil, nil, "text/plain"},
		{"/healthz", "getHealth", "operation", "Tell that the process lives.", "", nil, reflect.TypeFor[Health](), nil, ""},
		{"/readyz", "getReadiness", "operation", "Tell whether the server takes work.", "", nil, reflect.TypeFor[Health](), nil, ""},
	} {
		op, err := b.operation(r.id, r.tag, r.doc, r.scope, r.out)
		if err != nil {
			return err
		}
		op.Parameters = r.parameters
		if r.scope == "" {
			op.Security = &[]apiSecurity{{}}
		}
		if r.kind != "" {
			of := &jsonschema.Schema{Type: "string"}
			if r.kind == "application/json" {
				of.Type = "object"
			}
			op.Responses["200"] = &apiResponse{Description: "The document.", Content: map[string]apiMedia{r.kind: {of}}}
		}
		if r.in == nil {
			b.doc.Paths[r.path] = &apiPath{Get: op}
			continue
		}
		content, err := b.media(r.in, "application/json")
		if err != nil {
			return err
		}
		op.Body = &apiBody{Required: true, Content: content}
		b.doc.Paths[r.path] = &apiPath{Post: op}
	}
	return nil
}

// attach describes the route that becomes a WebSocket.
func (b *apiBuilder) attach() error {
	_, path, _ := strings.Cut(attachRoute, " ")
	op, err := b.operation("attach", "reads", "Follow a program's output over WebSocket, and type on it.", "read", nil)
	if err != nil {
		return err
	}
	text := &jsonschema.Schema{Type: "string"}
	op.Parameters = []apiParameter{
		{Name: "id", In: "path", Required: true, Description: "The session.", Schema: text},
		{Name: "process", In: "path", Required: true, Description: "The program.", Schema: text},
		{Name: "offset", In: "query", Description: "The first byte of the output that is sent; a negative number counts from what there is.", Schema: &jsonschema.Schema{Type: "integer"}},
		{Name: "readOnly", In: "query", Description: "Take no input from this client.", Schema: &jsonschema.Schema{Type: "boolean"}},
		{Name: "Sec-WebSocket-Protocol", In: "header", Required: true, Description: "What the client offers to speak: " + attachProtocol + ", and " + bearerProtocol + "TOKEN where it can't send an Authorization.", Schema: text},
	}
	op.Responses["101"] = &apiResponse{Description: "What follows are frames of " + attachProtocol + ": binary ones are output and input, text ones are JSON. docs/processes.md has them."}
	b.doc.Paths[path] = &apiPath{Get: op}
	return nil
}

// reads describes what package read answers.
func (b *apiBuilder) reads() error {
	text := &jsonschema.Schema{Type: "string"}
	for _, r := range (&read.Reads{}).Routes() {
		_, path, _ := strings.Cut(r.Pattern, " ")
		words := strings.FieldsFunc(strings.TrimPrefix(path, "/v1/"), func(c rune) bool { return c == '/' || c == '{' || c == '}' })
		op, err := b.operation("read_"+strings.Join(words, "_"), "reads", r.Summary, "read", nil)
		if err != nil {
			return err
		}
		kind := "application/json"
		if strings.Contains(path, "{id}") {
			op.Parameters = append(op.Parameters, apiParameter{Name: "id", In: "path", Required: true, Description: "Whose.", Schema: text})
		}
		for _, p := range r.Query {
			op.Parameters = append(op.Parameters, queryParameter(p))
		}
		if r.Stream {
			kind = "text/event-stream"
			op.Parameters = append(op.Parameters,
				apiParameter{Name: app.ChannelHeader, In: "header", Description: "The channel that follows; it needs not be one.", Schema: text},
				apiParameter{Name: "Last-Event-ID", In: "header", Description: "The id of the last event that was seen; the stream continues after it.", Schema: text})
		}
		op.Responses["200"] = &apiResponse{Description: "What there is to read.", Content: map[string]apiMedia{kind: {text}}}
		b.doc.Paths[path] = &apiPath{Get: op}
	}
	return nil
}

// queryParameter describes what a query may say.
func queryParameter(p read.Param) apiParameter {
	of := &jsonschema.Schema{Type: "string"}
	if p.Whole {
		of.Type = "integer"
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
	w.Write(doc) //nolint:errcheck // the client is gone; there is nobody to tell
}
