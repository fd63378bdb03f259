package manifest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/secret"
)

// Provider is a provider of models as a configuration file describes it. One
// that has the name of a known vendor changes only what it says.
type Provider struct {
	Name     string
	Where    string // file:line:column
	Protocol string // empty: the vendor's
	BaseURL  string
	Model    string // the one that is used by default
	Key      Reference
	Headers  []Header
	Limits   Limits
}

// Limits are what a provider is asked for at most, and how long it may take.
// Zero is the runtime's own.
type Limits struct {
	Requests   int           // a minute
	Tokens     int           // a minute, read and written
	Concurrent int           // at once
	First      time.Duration // until an answer begins
	Idle       time.Duration // between two pieces of it
	Total      time.Duration // until its end
}

// Header is a field of every request to a provider: text, a reference, or a
// reference after a word such as Bearer.
type Header struct {
	Name  string
	Text  string // before the reference, or everything
	Ref   Reference
	Where string
}

// Reference is the place of a secret. The zero value is none.
type Reference struct {
	Kind  string // env, file, secret
	Name  string // of the variable, the file, the secret
	Where string // file:line:column
}

// String implements fmt.Stringer.
func (r Reference) String() string { return r.Kind + ":" + r.Name }

// Protocols are those that a provider can speak.
type Protocols []string

const (
	providersName = "providers"
	keyHint       = "key: env:NAME, file:PATH, or secret:NAME after `belay secret set NAME`"
)

// providers reads the providers that a file describes, by name.
func providers(t strictyaml.Text, n ast.Node, p Protocols) ([]Provider, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, t.ErrorAt(n, nil, "want providers by name here").WithHint("providers: {local: {protocol: openai-chat, base-url: http://127.0.0.1:8080/v1}}")
	}
	var out []Provider
	for _, v := range m.Values {
		one, err := provider(t, v, p)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func provider(t strictyaml.Text, v *ast.MappingValueNode, known Protocols) (Provider, error) {
	key := v.Key.GetToken()
	p := Provider{Name: key.Value, Where: t.Where(key)}
	if !providerName.Match(p.Name) || p.Name == "scripted" || p.Name == "direct" {
		return p, t.Errorf(key, "%q can't be the name of a provider", p.Name).WithHint("lower-case letters, digits, hyphen, underscore and dot; scripted and direct are taken")
	}
	m, ok := v.Value.(*ast.MappingNode)
	if !ok {
		return p, t.Errorf(key, "want the provider's fields here").WithHint("%s: {protocol: openai-chat, base-url: http://127.0.0.1:8080/v1}", p.Name)
	}
	for _, f := range m.Values {
		if err := p.field(t, f, known); err != nil {
			return p, err
		}
	}
	return p, nil
}

// providerName is what a provider may be called.
var providerName = match.Lazy(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func (p *Provider) field(t strictyaml.Text, f *ast.MappingValueNode, known Protocols) (err error) {
	key := f.Key.GetToken()
	switch key.Value {
	case "protocol":
		if p.Protocol, err = scalar(t, f.Value); err == nil && !slices.Contains(known, p.Protocol) {
			err = t.Errorf(f.Value.GetToken(), "%q is none of the protocols", p.Protocol).WithHint("one of %s", strings.Join(known, ", "))
		}
	case "base-url":
		p.BaseURL, err = scalar(t, f.Value)
	case "model":
		p.Model, err = scalar(t, f.Value)
	case "key":
		p.Key, err = reference(t, f.Value)
	case "headers":
		p.Headers, err = headers(t, f.Value)
	case "limits":
		p.Limits, err = limits(t, f.Value)
	default:
		hint := "one of protocol, base-url, model, key, headers, limits"
		if HoldsSecret(key.Value) {
			hint = keyHint
		}
		err = t.Errorf(key, "a provider has no field %q", key.Value).WithHint("%s", hint)
	}
	return err
}

// reference reads where a secret is. A secret itself is refused, and isn't
// repeated in the error.
func reference(t strictyaml.Text, n ast.Node) (Reference, error) {
	s, err := scalar(t, n)
	if err != nil {
		return Reference{}, err
	}
	r, ok := ParseReference(s)
	if !ok {
		return r, t.Errorf(n.GetToken(), "a key must not be written in this file: name the place where it is").WithHint("%s", keyHint)
	}
	r.Where = t.Where(n.GetToken())
	return r, nil
}

// ParseReference reads env:NAME, file:PATH or secret:NAME.
func ParseReference(s string) (Reference, bool) {
	kind, name, ok := strings.Cut(s, ":")
	switch {
	case !ok || strings.TrimSpace(name) != name || name == "":
		return Reference{}, false
	case kind == "env" && match.Variable.Match(name), kind == "file", kind == "secret":
		return Reference{Kind: kind, Name: name}, true
	}
	return Reference{}, false
}

func headers(t strictyaml.Text, n ast.Node) ([]Header, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, t.ErrorAt(n, nil, "want header fields by name here").WithHint("headers: {X-Team: search}")
	}
	var out []Header
	for _, v := range m.Values {
		h, err := header(t, v)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

// ours are the header fields that the transport sets itself.
var ours = []string{"Host", "Connection", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Accept", "Accept-Encoding", "Upgrade", "Te", "Trailer"}

func header(t strictyaml.Text, v *ast.MappingValueNode) (h Header, err error) {
	name := v.Key.GetToken()
	h = Header{Name: http.CanonicalHeaderKey(name.Value), Where: t.Where(v.Value.GetToken())}
	if !fieldName.Match(name.Value) || slices.Contains(ours, h.Name) {
		return h, t.Errorf(name, "%q is no header field that can be set", name.Value).WithHint("headers: {X-Team: search}")
	}
	s, err := scalar(t, v.Value)
	if err != nil {
		return h, err
	}
	last := strings.LastIndexByte(s, ' ') + 1
	if r, ok := ParseReference(s[last:]); ok {
		r.Where = h.Where
		h.Text, h.Ref = s[:last], r
		return h, nil
	}
	if HoldsSecret(h.Name) {
		return h, t.Errorf(v.Value.GetToken(), "%s holds a secret, which must not be written in this file: name the place where it is", h.Name).
			WithHint("%s: env:NAME, file:PATH, or secret:NAME after `belay secret set NAME`", h.Name)
	}
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return h, t.Errorf(v.Value.GetToken(), "a header field is one line of text").WithHint("headers: {X-Team: search}")
	}
	h.Text = s
	return h, nil
}

// fieldName is a token of RFC 9110, section 5.6.2.
var fieldName = match.Lazy(`^[!#$%&'*+.^_|~0-9A-Za-z\x60-]+$`)

// HoldsSecret reports whether a field of this name holds a secret by convention.
func HoldsSecret(name string) bool {
	n := strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	return secret.IsName(n) || secret.IsName("X_"+n) || strings.Contains(n, "AUTH") || strings.Contains(n, "COOKIE") || strings.HasSuffix(n, "KEY")
}
