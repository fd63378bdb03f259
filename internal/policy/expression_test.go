package policy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"

	"github.com/belay-run/belay"
)

// frontDoor is CEL as its library offers it whole.
func frontDoor(t *testing.T) *cel.Env {
	options := []cel.EnvOption{cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(maxText)}
	for _, name := range variables {
		options = append(options, cel.Variable(name, typeOf(name)))
	}
	e, err := cel.NewEnv(options...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExpressionsMeanWhatTheLibrarySays compiles and asks expressions both ways:
// ones that people write, and a thousand that nobody would.
func TestExpressionsMeanWhatTheLibrarySays(t *testing.T) {
	texts := []string{
		"tool == 'read' && size(paths) == 0", "args.n in [1, 2, 3]", "has(args.text) && args.text.matches('^a+$')", "argv.exists(a, a.startsWith('-'))",
		"paths.all(p, p.endsWith('.go')) || hosts.exists_one(h, h == 'example.org')", "paths.map(p, size(p)).filter(n, n > 3).size() > 0",
		"timestamp('2026-01-01T00:00:00Z') < timestamp('2027-01-01T00:00:00Z')", "duration('1h') > duration('1m')", "int('7') == args.n", "string(args.n) == '1'",
		"type(args.n) == int", "dyn(args.text) == 1", "args.nothing.more == 1", "b'ab' == bytes('ab')", "{'a': args.n}['a'] == 1", "google.protobuf.Duration{seconds: 1} == duration('1s')",
		"args.text.matches('(a|b)*c')", "args.text.matches(args.text)", "args.text + args.text + args.text != ''", "1 / 0 == 1", "9223372036854775807 + 1 > 0", "math.abs(1) == 1",
		"tol == 'read'", "paths.contians('x')", "tool = 'read'", "size()", "1 == 'a'", "tool", "args", "", "((((", "'\\", "1 < 1.5", "x.y.z", "has(tool)", "cel.bind(x, 1, x == 1)",
		"[1,2,3,4,5,6,7,8,9].all(x, [1,2,3,4,5,6,7,8,9].all(y, [1,2,3,4,5,6,7,8,9].all(z, !args.text.contains('b'))))", strings.Repeat("!", 70) + "true", strings.Repeat("(", 80) + "true" + strings.Repeat(")", 80),
	}
	r := rand.New(rand.NewPCG(7, 11))
	for range 1000 {
		texts = append(texts, random(r, 'b', 2))
	}
	raw := []byte(`{"text":"` + strings.Repeat("ab", 3000) + `","n":1,"list":["a","b"],"deep":{"x":[1,2,{"y":null}]}}`)
	request := Request{Tool: belay.ToolSpec{Name: "read"}, Args: raw, Mode: belay.ModeDefault, Workspace: "/ws", Level: "L2"}
	library, ours := frontDoor(t), &conditions{}
	readable, held, failed := 0, 0, 0
	for _, text := range texts {
		tree, issues := library.Compile(text)
		c, bad := ours.compile(text)
		if want := issues.Err(); want != nil {
			if bad == nil || !strings.Contains(bad.Message, want.Error()) {
				t.Fatalf("%s: the library says\n%v\nand we\n%v", text, want, bad)
			}
			continue
		}
		if is := tree.OutputType(); !is.IsExactType(cel.BoolType) && !is.IsExactType(cel.DynType) {
			if bad == nil || !strings.Contains(bad.Message, "says "+is.String()) {
				t.Fatalf("%s says %s, and we say %v", text, is, bad)
			}
			continue
		}
		options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
		if !plain(tree.NativeRep().Expr()) {
			options = append(options, cel.CostLimit(maxCost))
		}
		program, err := library.Program(tree, options...)
		if (err != nil) != (bad != nil) || err != nil && !strings.Contains(bad.Message, err.Error()) {
			t.Fatalf("%s: the library says %v, and we %v", text, err, bad)
		}
		if err != nil {
			continue
		}
		readable++
		sub := &subject{tool: "read", args: &arguments{raw: raw}, paths: []access{{path: "/ws/a.go"}, {path: "/ws/b"}}, hosts: []string{"example.org"}}
		holds, ok := c.holds(&request, sub)
		want, _, err := program.Eval(sub.vars)
		wanted, isBool := false, false
		if err == nil {
			wanted, isBool = want.Value().(bool)
		}
		if ok != isBool || holds != wanted {
			t.Fatalf("%s: the library says %v, %v, and we %v, answered %v", text, want, err, holds, ok)
		}
		if held += map[bool]int{true: 1}[holds]; !ok {
			failed++
		}
	}
	t.Logf("%d of %d can be read, %d hold, %d give no answer", readable, len(texts), held, failed)
	if readable < 500 || held < 100 || failed < 100 {
		t.Error("that is too little of one kind to say anything")
	}
}

// random is an expression of a kind: b for true or false, n for a number, t for a
// text, l for a list of texts. What comes of arguments may be something else.
func random(r *rand.Rand, kind byte, depth int) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	a := func(kind byte) string {
		if depth == 0 || r.IntN(12) == 0 {
			return one(leaves[kind]...)
		}
		return random(r, kind, depth-1)
	}
	switch kind {
	case 'n':
		return one("size("+a('l')+")", "size("+a('t')+")", "("+a('n')+one(" + ", " - ", " * ", " / ", " % ")+a('n')+")", "-"+a('n'), "int("+a('t')+")", a('l')+".map(x, size(x))[0]")
	case 't':
		return one("("+a('t')+" + "+a('t')+")", "string("+a('n')+")", "("+a('b')+" ? "+a('t')+" : "+a('t')+")", a('l')+"["+a('n')+"]")
	case 'l':
		return one("["+a('t')+", "+a('t')+"]", "("+a('l')+" + "+a('l')+")", a('l')+".filter(x, x != "+a('t')+")", a('l')+".map(y, y + "+a('t')+")")
	}
	return one("("+a('b')+one(" && ", " || ", " == ")+a('b')+")", "!"+a('b'), "("+a('n')+one(" == ", " < ", " >= ", " != ")+a('n')+")", "("+a('t')+one(" == ", " < ")+a('t')+")",
		"("+a('t')+" in "+a('l')+")", a('t')+one(".startsWith(", ".endsWith(", ".contains(", ".matches(")+a('t')+")", a('l')+one(".all(x, ", ".exists(x, ", ".exists_one(x, ")+"x == "+a('t')+")",
		"("+a('b')+" ? "+a('b')+" : "+a('b')+")", "type("+a('n')+") == int", "has(args."+one("text", "none", "n")+")")
}

var leaves = map[byte][]string{
	'b': {"true", "false", "args.n", "args.none", "tool == mode", "'a'"},
	'n': {"1", "-2", "0", "7", "1.5", "args.n", "args.deep.x[1]", "size(paths)"},
	't': {"'a'", "'read'", "''", "tool", "mode", "workspace", "args.text", "args.list[0]", "args.none", "'['"},
	'l': {"paths", "hosts", "argv", "['a']", "args.list", "args.deep.x", "['read', 'a', 'read']"},
}
