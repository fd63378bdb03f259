package belay_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/golden"
)

// TestGuaranteesAreShown holds docs/guarantees.md against the tests that name its
// promises. With -update it writes their names below each promise.
func TestGuaranteesAreShown(t *testing.T) {
	const file = "docs/guarantees.md"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	current, problems := tree{root: ".", packages: map[string]*testPackage{}, dead: listedDead(t)}.check(string(doc))
	for _, p := range problems {
		t.Error(p)
	}
	golden.Compare(t, file, current)
}

var (
	promiseForm = regexp.MustCompile(`^\*\*([A-Z][0-9]+)\*\* (\*Required\* \(.+\): )?[^*\s].*\.\n?$`)
	markerForm  = regexp.MustCompile(`(?mi)^[ \t]*(?://|#) guarantee: *(.*?)\.?$`)
)

// check returns a document with the tests as they are, and what is wrong. A line
// that begins with ** is a promise, one that begins with ` lists its tests.
func (in tree) check(doc string) (current string, problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	marks, err := in.marks()
	if err != nil {
		bad("%v", err)
	}
	var out strings.Builder
	seen := map[string]bool{}
	for line := range strings.Lines(doc) {
		if strings.HasPrefix(line, "`") {
			continue
		}
		out.WriteString(line)
		if !strings.HasPrefix(line, "**") {
			continue
		}
		p := promiseForm.FindStringSubmatch(line)
		if p == nil {
			bad("%q isn't an id, *Required* (by which part) if it isn't built, and a sentence", strings.TrimSpace(line))
			continue
		}
		id, required := p[1], p[2] != ""
		if seen[id] {
			bad("%s: the id is taken", id)
		}
		seen[id] = true
		tests := shown(marks, id)
		switch {
		case required && tests != "":
			bad("%s is required, not built, and tests name it: %s", id, tests)
		case !required && tests == "":
			bad("%s: no test names it", id)
		}
		out.WriteString(tests)
	}
	for _, m := range marks {
		for _, id := range m.ids {
			if !seen[id] {
				bad("%s: there is no promise %q", m.file, id)
			}
		}
		if err := in.isTest(m); err != nil {
			bad("%s: %v", m.file, err)
		} else if dead := in.standsOnDead(m.dir, m.function); dead != "" {
			bad("%s: %s stands on %s alone, which the program can't reach (tools/dead.txt)", m.file, m.function, dead)
		}
	}
	return out.String(), problems
}

// shown is the line that lists the tests of a promise: functions by package, and
// files. A name without its folder is of the folder before it.
func shown(marks []mark, id string) string {
	var names []string
	before, listed := "", map[string]bool{}
	for _, m := range marks {
		if !slices.Contains(m.ids, id) {
			continue
		}
		at, name := m.dir+".", m.function
		switch {
		case name == "":
			at, name = m.dir+"/", path.Base(m.file)
		case m.dir == ".":
			at = "belay."
		}
		if listed[at+name] {
			continue
		}
		listed[at+name] = true
		if at != before {
			name = at + name
		}
		names, before = append(names, name), at
	}
	if names == nil {
		return ""
	}
	return "`" + strings.Join(names, ", ") + "`\n"
}

// mark is a comment that names promises: in a test file it belongs to the function
// that it stands above or in, elsewhere to the whole file.
type mark struct {
	file, dir, function string
	ids                 []string
}

// marks are those of the test files, scripts and packages of laws below the root.
func (in tree) marks() (all []mark, err error) {
	err = filepath.WalkDir(in.root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != in.root && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".txt", ".txtar"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found := markerForm.FindAllSubmatchIndex(text, -1)
		if found == nil {
			return nil
		}
		var functions []*ast.FuncDecl
		if strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					functions = append(functions, fn)
				}
			}
		}
		file, err := filepath.Rel(in.root, name)
		for _, at := range found {
			m := mark{file: file, dir: path.Dir(file), ids: strings.Split(string(text[at[2]:at[3]]), ", ")}
			for _, fn := range functions {
				begin := fn.Pos()
				if fn.Doc != nil {
					begin = fn.Doc.Pos()
				}
				if pos := token.Pos(at[1]); begin <= pos && pos < fn.End() { // a single file: positions are offsets from 1
					m.function = fn.Name.Name
				}
			}
			all = append(all, m)
		}
		return err
	})
	return all, err
}

// isTest reports what is wrong with the place of a mark.
func (in tree) isTest(m mark) error {
	switch {
	case filepath.Ext(m.file) != ".go":
		return nil
	case !strings.HasSuffix(m.file, "_test.go"):
		if !strings.HasSuffix(m.dir, "test") {
			return fmt.Errorf("a promise is named by a test, and this is none")
		}
		return nil
	case m.function == "":
		return fmt.Errorf("the mark of %s stands above no function", strings.Join(m.ids, ", "))
	case strings.HasPrefix(m.function, "Test"), strings.HasPrefix(m.function, "Fuzz"):
		return nil
	}
	p, err := in.read(m.dir)
	if err != nil {
		return err
	}
	for name, uses := range p.uses {
		if name != m.function && uses[ref{m.dir, m.function}] {
			return nil
		}
	}
	return fmt.Errorf("%s is no test, and no test calls it", m.function)
}

// tree is the source below a folder.
type tree struct {
	root     string
	packages map[string]*testPackage
	dead     []string // functions that the program can't reach, as tools/dead.txt has them
}

// testPackage is what a directory's Go files declare.
type testPackage struct {
	code []string                // functions of the files that aren't tests
	uses map[string]map[ref]bool // names in each function of test files
}

// read parses the Go files of a directory, once.
func (in tree) read(dir string) (*testPackage, error) {
	if p := in.packages[dir]; p != nil {
		return p, nil
	}
	files, err := filepath.Glob(filepath.Join(in.root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no package %s", dir)
	}
	p := &testPackage{uses: map[string]map[ref]bool{}}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); !ok {
				continue
			} else if strings.HasSuffix(file, "_test.go") {
				p.uses[fn.Name.Name] = mentions(f, dir, fn)
			} else {
				p.code = append(p.code, named(fn))
			}
		}
	}
	in.packages[dir] = p
	return p, nil
}

// The check of the guarantees can fail.
func TestAGuaranteeWithoutItsTestIsNoticed(t *testing.T) {
	const held = "**A1** It holds.\n"
	for name, c := range map[string]struct{ file, text, doc, want string }{
		"a test":                {"a/a_test.go", "package a\n\n// Why.\n// Guarantee: A1.\nfunc TestIt(t *testing.T) {}\n", held, ""},
		"a comment in a test":   {"a/a_test.go", "package a\n\nfunc TestIt(t *testing.T) {\n\t// Guarantee: A1.\n}\n", held, ""},
		"a law that is tried":   {"a/a_test.go", "package a\n\n// Guarantee: A1.\nfunc law() {}\n\nfunc TestIt(t *testing.T) { law() }\n", held, ""},
		"a law of a package":    {"a/atest/laws.go", "package atest\n\nvar laws = []law{\n\t// Guarantee: A1.\n\t{},\n}\n", held, ""},
		"a script":              {"a/it.txtar", "# Why.\n# guarantee: A1\nexec true\n", held, ""},
		"not built":             {"a/it.txtar", "exec true\n", "**A1** *Required* (the next part): It will hold.\n", ""},
		"no test":               {"a/it.txtar", "exec true\n", held, "A1: no test names it"},
		"no promise":            {"a/it.txtar", "# guarantee: A1, A2\n", held, `a/it.txtar: there is no promise "A2"`},
		"no list of promises":   {"a/it.txtar", "# guarantee: A1 A2\n", held, `there is no promise "A1 A2"`},
		"not built, but tested": {"a/it.txtar", "# guarantee: A1\n", "**A1** *Required* (the next part): It will hold.\n", "is required, not built"},
		"not built by whom":     {"a/it.txtar", "# guarantee: A1\n", "**A1** *Required* It will hold.\n", "isn't an id"},
		"no sentence":           {"a/it.txtar", "# guarantee: A1\n", "**A1**\n", "isn't an id"},
		"twice":                 {"a/it.txtar", "# guarantee: A1\n", held + held, "the id is taken"},
		"the program's code":    {"a/a.go", "package a\n\n// Guarantee: A1.\nfunc It() {}\n", held, "this is none"},
		"above nothing":         {"a/a_test.go", "package a\n\n// Guarantee: A1.\n\nfunc TestIt(t *testing.T) {}\n", held, "stands above no function"},
		"a law nobody tries":    {"a/a_test.go", "package a\n\n// Guarantee: A1.\nfunc law() {}\n", held, "no test calls it"},
	} {
		root := t.TempDir()
		writeTree(t, root, map[string]string{c.file: c.text})
		_, problems := tree{root: root, packages: map[string]*testPackage{}}.check(c.doc)
		if got := strings.Join(problems, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// The list of tests follows the marks, in the order of the files.
func TestTheTestsOfAGuaranteeAreListed(t *testing.T) {
	root := t.TempDir()
	writeTree(t, root, map[string]string{
		"a/a_test.go": "package a\n\n// Guarantee: A1.\nfunc TestOne(t *testing.T) {}\n\n// Guarantee: A2, A1.\nfunc TestTwo(t *testing.T) {}\n",
		"a/it.txtar":  "# guarantee: A1\n",
		"b_test.go":   "package b\n\n// Guarantee: A1.\nfunc TestOne(t *testing.T) {}\n",
	})
	got, problems := tree{root: root, packages: map[string]*testPackage{}}.check("# Head\n\n**A1** It holds.\n`a.TestGone`\n\n**A2** It holds too.\n")
	want := "# Head\n\n**A1** It holds.\n`a.TestOne, TestTwo, a/it.txtar, belay.TestOne`\n\n**A2** It holds too.\n`a.TestTwo`\n"
	if got != want || problems != nil {
		t.Errorf("got %q, %q", got, problems)
	}
}

func writeTree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
