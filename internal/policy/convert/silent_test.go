package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// whole documents of each format, with something at every level. The rules of
// Gemini CLI are written as TOML of the same form.
var wholes = map[Format]string{
	Claude: `{"$schema":"s","model":"m","env":{"A":"b"},"permissions":{"deny":["Bash(rm:*)","Read(.env)","WebFetch"],"ask":["Edit"],"allow":["Bash(git status)"],"additionalDirectories":["d"]}}`,
	OpenClaw: `{"meta":{"v":{"w":1}},"tools":{"profile":"coding","deny":["exec","process"],"exec":{"ask":"always","safeBins":["jq"]},"fs":{"workspaceOnly":true},"elevated":{"allowFrom":{"a":["b"]}}},
		"agents":{"defaults":{"model":{"primary":"m"}},"list":[{"id":"a","tools":{"deny":["read"],"exec":{"mode":"ask"}}}],"entries":{"b":{"name":"n","tools":{"allow":["read"],"fs":{}}}}}}`,
	Cowork: `{"version":"1.0","defaults":{"fallback":"deny"},"rules":[{"id":"r","action":"file.read","when":{"pathWithinGrant":false,"matchesPattern":["**/x"]},"decision":"deny"},{"id":"s","action":"file.write","decision":"allow_with_confirm"}]}`,
	Gemini: `{"rule":[{"toolName":"run_shell_command","commandPrefix":["rm"],"decision":"deny","priority":5},{"toolName":["replace"],"toolAnnotations":{"readOnlyHint":true},"decision":"ask_user","priority":4}],
		"safety_checker":[{"toolName":"*","checker":{"type":"in-process"}}]}`,
}

// asTOML writes a value in one line, as a table within a line.
func asTOML(v any) string {
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			parts = append(parts, fmt.Sprintf("%q = %s", name, asTOML(e)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, e := range v {
			parts = append(parts, asTOML(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}

func written(f Format, doc map[string]any) string {
	if f != Gemini {
		raw, _ := json.Marshal(doc)
		return string(raw)
	}
	var b strings.Builder
	for name, v := range doc {
		fmt.Fprintf(&b, "%q = %s\n", name, asTOML(v))
	}
	return b.String()
}

// level is an object within a document.
type level struct {
	path string
	at   map[string]any
}

func levels(path string, v any) (out []level) {
	switch v := v.(type) {
	case map[string]any:
		out = append(out, level{path, v})
		for name, e := range v {
			out = append(out, levels(strings.TrimPrefix(path+"."+name, "."), e)...)
		}
	case []any:
		for i, e := range v {
			out = append(out, levels(fmt.Sprintf("%s.%d", path, i), e)...)
		}
	}
	slices.SortFunc(out, func(a, b level) int { return strings.Compare(a.path, b.path) })
	return out
}

// denials are the tools that rules deny whatever the call is.
func denials(r *Result) (out []string) {
	for _, rule := range r.Document.Rules {
		if rule.Verdict == policy.Deny && len(rule.Tool) > 0 {
			out = append(out, spelled(&rule))
		}
	}
	slices.Sort(out)
	return out
}

// TestNothingOfASourceIsSilent: a name that nothing here knows, of whatever value
// and at whatever level, is named; and no deny that stood there before is gone or
// narrower without a word.
// Guarantee: G46.
func TestNothingOfASourceIsSilent(t *testing.T) {
	values := []any{true, false, nil, 1.0, "deny", "", []any{}, []any{"Bash"}, map[string]any{}, map[string]any{"deny": []any{"*"}}, map[string]any{"x": map[string]any{"y": 1.0}}}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(formats).Draw(t, "format")
		var doc map[string]any
		if err := json.Unmarshal([]byte(wholes[f]), &doc); err != nil {
			t.Fatal(err)
		}
		before, err := Read(f, []byte(written(f, doc)), Options{Name: "F", Home: "/home/u"})
		if err != nil {
			t.Fatal(err)
		}
		l := rapid.SampledFrom(levels("", doc)).Draw(t, "level")
		name := rapid.SampledFrom([]string{"zzNew", "denyAlso", "unless", "Deny", "PERMISSIONS", "toolname", "exclude"}).Draw(t, "name")
		value := rapid.SampledFrom(values).Draw(t, "value")
		if value == nil && f == Gemini {
			value = "nil"
		}
		if l.path == "agents.entries" {
			name = "zz" // an agent by that name
			value = map[string]any{"deny": []any{"Bash"}}
		}
		l.at[name] = value
		after, err := Read(f, []byte(written(f, doc)), Options{Name: "F", Home: "/home/u"})
		if err != nil {
			return // it stops
		}
		at := strings.TrimPrefix(l.path+"."+name, ".")
		named, lost := false, false
		for _, i := range after.Items {
			within := strings.HasPrefix(at+".", i.Source+".")
			named = named || within || strings.Contains(i.Why, name)
			lost = lost || i.Kept == Lost && (within || strings.Contains(i.Why, name))
			if i.Where == "" {
				t.Fatalf("%s has no place", i.Source)
			}
		}
		known := slices.ContainsFunc([]string{"safety_checker.", "rule.1.toolAnnotations."}, func(p string) bool { return strings.HasPrefix(at, p) }) || at == "agents.entries.zz" && slices.ContainsFunc(after.Items, func(i Item) bool { return i.Source == at+".deny" && i.Kept == Lost })
		if !known && !named { // of those it is named that they aren't read
			t.Fatalf("%s of %s isn't named: %+v", at, f, after.Items)
		}
		if gone := slices.ContainsFunc(denials(before), func(d string) bool { return !slices.Contains(denials(after), d) }); gone && !lost {
			t.Fatalf("%s of %s takes a deny away: %v, not %v", at, f, denials(after), denials(before))
		}
	})
}

// TestADenyOfWhatIsNotKnownIsLost: the rule is there, and says that it may mean less.
// Guarantee: G46.
func TestADenyOfWhatIsNotKnownIsLost(t *testing.T) {
	for f, in := range map[Format]string{
		Claude:   `{"permissions":{"deny":["%s"]}}`,
		Gemini:   "[[rule]]\ntoolName = '%s'\ndecision = 'deny'\npriority = 1",
		OpenClaw: `{"tools":{"deny":["%s"]}}`,
		Cowork:   `{"version":"1.0","rules":[{"id":"x","action":"%s","decision":"deny"}]}`,
	} {
		for _, name := range []string{"Frobnicate", "frob*", "*frob", "EXEC2", "group:frob", "Bash(x", "frob(x)", "frob__x(y)"} {
			r, err := Read(f, fmt.Appendf(nil, in, name), Options{Name: "F"})
			if err == nil && r.Count(Lost) != 1 && !(f == OpenClaw && strings.Contains(name, "__")) { // a server's tool is known by its form
				t.Errorf("%s: a deny of %s is %+v", f, name, r.Items)
			}
		}
	}
}

// TestADenyOfEverythingMeansEveryToolHere: what runs programs, touches files,
// reaches the network or speaks to somebody is denied with what does it there.
// Guarantee: G46.
func TestADenyOfEverythingMeansEveryToolHere(t *testing.T) {
	list := func(names []string) string {
		slices.Sort(names)
		raw, _ := json.Marshal(names)
		return string(raw)
	}
	var claude, gemini []string
	for n := range claudeTools {
		claude = append(claude, n)
	}
	for n := range geminiTools {
		gemini = append(gemini, n)
	}
	elsewhere := map[Format][]string{ // no tool there does this
		Claude: {"message", "notify", "sessions_list", "sessions_history", "wait_agent", "close_agent"},
		Gemini: {"message", "notify", "sessions_list", "sessions_history", "wait_agent", "close_agent", "sessions_send", "sessions_input", "schedule_create", "schedule_list", "schedule_delete"},
	}
	for f, in := range map[Format]string{
		Claude:   `{"permissions":{"deny":` + list(claude) + `}}`,
		Gemini:   "[[rule]]\ntoolName = " + list(gemini) + "\ndecision = 'deny'\npriority = 1",
		OpenClaw: `{"tools":{"deny":["group:openclaw"]}}`,
		Cowork:   `{"version":"1.0","rules":[{"id":"x","action":"*","decision":"deny"}]}`,
	} {
		r, err := Read(f, []byte(in), Options{Name: "F"})
		if err != nil || r.Count(Lost) > 0 {
			t.Fatal(f, err, r)
		}
		set, err := policy.Compile(r.Document)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range tool.Groups() {
			if !slices.Contains([]string{"files", "runtime", "web", "sessions", "automation", "messaging"}, g.Name) || f == Cowork && g.Name != "files" && g.Name != "web" {
				continue
			}
			for _, name := range g.Tools {
				if slices.Contains(elsewhere[f], name) {
					continue
				}
				v := policy.Evaluate(set, &policy.Request{Tool: belay.ToolSpec{Name: name}, Mode: belay.ModeDefault, Args: json.RawMessage(`{}`)})
				if v.Decision != policy.Deny {
					t.Errorf("%s: %s of group %s is %s", f, name, g.Name, v.Decision)
				}
			}
		}
	}
}
