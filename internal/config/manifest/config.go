package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Setting is one value of a configuration file, as text.
type Setting struct {
	Name  string
	Value string   // of most settings
	List  []string // of those that are lists
	Where string   // file:line:column
}

const configReference = "docs/configuration.md lists the settings"

// Known is what a configuration file may hold.
type Known struct {
	Names     []string  // of settings
	Lists     []string  // of settings that are lists
	Protocols Protocols // of providers
}

// File is what a configuration file says.
type File struct {
	Settings  []Setting
	Providers []Provider
	Quotas    []Quota
	Redact    Redact
	Servers   []Server // MCP servers
}

// Redact says what of the known forms of secrets isn't taken out of texts.
type Redact struct {
	Off   []string `yaml:"off"`  // forms that aren't looked for
	Keep  []string `yaml:"keep"` // expressions: values that match stay
	Where string   `yaml:"-"`    // file:line:column
}

// Quota limits what a tenant or a user may use in a window of time.
type Quota struct {
	Of     string `yaml:"of"`     // tenant, user
	Kind   string `yaml:"kind"`   // empty: the limit's
	Limit  string `yaml:"limit"`  // an amount with its unit
	Per    string `yaml:"per"`    // hour, day, week, month
	Zone   string `yaml:"zone"`   // whose days; empty is UTC
	Action string `yaml:"action"` // block, warn; empty is block
	Where  string `yaml:"-"`      // file:line:column
}

// quotasName is the name of the list of quotas.
const quotasName = "quotas"

// redactName is the name of what isn't taken out of texts.
const redactName = "redact"

// ReadConfig reads a configuration file. Name is the file's name in errors,
// which are belay.Errors with CodeBadConfig and repeat no value that may be a
// secret.
func ReadConfig(name string, data []byte, k Known) (File, error) {
	t := strictyaml.Text{Name: name, Noun: "configuration", Code: belay.CodeBadConfig, Hint: configReference}
	var f File
	if blank(data) {
		return f, nil
	}
	root, err := t.Document(data)
	if err != nil {
		return f, err
	}
	m, ok := root.(*ast.MappingNode)
	if !ok {
		return f, t.ErrorAt(root, nil, "the configuration is not a list of names and values").WithHint("mode: default; %s", configReference)
	}
	for _, v := range m.Values {
		key := v.Key.GetToken()
		s := Setting{Name: key.Value, Where: t.Where(key)}
		switch {
		case s.Name == providersName:
			if f.Providers, err = providers(t, v.Value, k.Protocols); err != nil {
				return File{}, err
			}
			continue
		case s.Name == quotasName:
			if f.Quotas, err = quotas(t, v.Value); err != nil {
				return File{}, err
			}
			continue
		case s.Name == serversName:
			if f.Servers, err = servers(t, v.Value, false); err != nil {
				return File{}, err
			}
			continue
		case s.Name == redactName:
			f.Redact.Where = s.Where
			if err := t.Decode(v.Value, &f.Redact); err != nil {
				return File{}, err
			}
			continue
		case slices.Contains(k.Lists, s.Name):
			err = t.Decode(v.Value, &s.List)
		case slices.Contains(k.Names, s.Name):
			s.Value, err = scalar(t, v.Value)
		default:
			err = t.Errorf(key, "there is no setting %q", s.Name).WithHint("%s", k.instead(s.Name))
		}
		if err != nil {
			return File{}, err
		}
		f.Settings = append(f.Settings, s)
	}
	return f, nil
}

// instead is what to write for a name that is no setting.
func (k Known) instead(name string) string {
	all := append(slices.Concat(k.Names, k.Lists), providersName, serversName, quotasName, redactName)
	if HoldsSecret(name) {
		return "keys are kept elsewhere: belay login VENDOR"
	}
	return match.Hint(name, all, "belay config show lists them")
}

// quotas reads the list of quotas.
func quotas(t strictyaml.Text, n ast.Node) (all []Quota, err error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, t.ErrorAt(n, nil, "quotas are a list").WithHint("- {of: user, limit: 50usd, per: day}; %s", configReference)
	}
	for _, v := range list.Values {
		var q Quota
		if err := t.Decode(v, &q); err != nil {
			return nil, err
		}
		q.Where = t.Where(v.GetToken())
		all = append(all, q)
	}
	return all, nil
}

// scalar is a value on one line, as it is written.
func scalar(t strictyaml.Text, n ast.Node) (string, error) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.LiteralNode:
	default:
		return "", t.Errorf(n.GetToken(), "want one value here")
	}
	var v any
	if err := yaml.NodeToValue(n, &v); err != nil {
		return "", t.Bad(err)
	}
	return strings.TrimSpace(fmt.Sprint(v)), nil
}
