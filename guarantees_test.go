package belay_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// promise is a row of docs/guarantees.md.
type promise struct {
	line                 int
	id, text, state, how string
}

// TestGuaranteesAreShown holds docs/guarantees.md against the tree.
func TestGuaranteesAreShown(t *testing.T) {
	doc, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	problems, verified := checkGuarantees(string(doc), tree{root: ".", packages: map[string]*testPackage{}, dead: listedDead(t)})
	for _, p := range problems {
		t.Errorf("docs/guarantees.md:%s", p)
	}
	if verified == 0 {
		t.Error("docs/guarantees.md: no promise is verified")
	}
}

// checkGuarantees says what is wrong with the tables of a document.
func checkGuarantees(doc string, in tree) (problems []string, verified int) {
	seen := map[string]bool{}
	for _, p := range promises(doc) {
		bad := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%d: %s: ", p.line, p.id)+fmt.Sprintf(format, args...))
		}
		if seen[p.id] {
			bad("the id is taken")
		}
		seen[p.id] = true
		tests := quoted.FindAllStringSubmatch(p.how, -1)
		switch p.state {
		case "verified":
			verified++
			if len(tests) == 0 {
				bad("verified, and no test is named")
			}
		case "implemented":
		case "required":
			if len(tests) > 0 || p.how == "" {
				bad("required: the last column says which part brings it, and names no test")
			}
		default:
			bad("%q is no state", p.state)
		}
		if p.text == "" {
			bad("it promises nothing")
		}
		for _, m := range tests {
			if err := in.has(m[1]); err != nil {
				bad("%v", err)
			} else if dead := in.standsOnDead(m[1]); dead != "" && p.state == "verified" {
				bad("%s stands on %s alone, which the program can't reach (tools/dead.txt)", m[1], dead)
			}
		}
	}
	return problems, verified
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	idForm = regexp.MustCompile(`^[A-Z][0-9]+$`)
)

// promises are the rows of all tables: whatever has four columns and isn't a head.
func promises(doc string) (all []promise) {
	for i, l := range strings.Split(doc, "\n") {
		cells := strings.Split(l, "|")
		if len(cells) < 2 || strings.TrimSpace(cells[0]) != "" {
			continue
		}
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		if first := cells[1]; first == "id" || strings.HasPrefix(first, "---") {
			continue
		}
		p := promise{line: i + 1, id: cells[1]}
		if len(cells) == 6 && idForm.MatchString(p.id) {
			p.text, p.state, p.how = cells[2], cells[3], cells[4]
		} else {
			p.state = "a row that isn't id, promise, state, shown by"
		}
		all = append(all, p)
	}
	return all
}

// tree finds tests by name.
type tree struct {
	root     string
	packages map[string]*testPackage
	dead     []string // functions that the program can't reach, as tools/dead.txt has them
}

// testPackage is what a directory's Go files declare and say.
type testPackage struct {
	tests   []string // functions of test files
	strings []string // texts that stand in any file

	code []string                // functions of the other files
	uses map[string]map[ref]bool // names in each function of test files
}

const storeLaw = "storetest: "

// has reports whether the tree has what a promise names.
func (in tree) has(name string) error {
	if claim, ok := strings.CutPrefix(name, storeLaw); ok {
		return in.says("internal/store/storetest", name, claim)
	}
	dir, rest, ok := strings.Cut(name, ".Test")
	if !ok {
		return fmt.Errorf("%q is neither package.Test nor %s…", name, storeLaw)
	}
	if dir == "belay" {
		dir = "."
	}
	test, claim, isCase := strings.Cut("Test"+rest, "/")
	p, err := in.read(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(p.tests, test) {
		return fmt.Errorf("%s has no test %s", dir, test)
	}
	if !isCase {
		return nil
	}
	for _, pattern := range []string{"testdata/" + claim + ".*", claim + ".txtar"} {
		if found, err := filepath.Glob(filepath.Join(in.root, dir, pattern)); err == nil && len(found) > 0 {
			return nil
		}
	}
	return in.says(dir, name, claim)
}

func (in tree) says(dir, name, claim string) error {
	p, err := in.read(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(p.strings, claim) {
		return fmt.Errorf("%s: nothing in %s is called that", name, dir)
	}
	return nil
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
		p.take(f, dir, strings.HasSuffix(file, "_test.go"))
	}
	in.packages[dir] = p
	return p, nil
}

func (p *testPackage) take(f *ast.File, dir string, test bool) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if !test {
			p.code = append(p.code, named(fn))
			continue
		}
		p.uses[fn.Name.Name] = mentions(f, dir, fn)
		if fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
			p.tests = append(p.tests, fn.Name.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				p.strings = append(p.strings, s)
			}
		}
		return true
	})
}

// The check of the guarantees can fail.
func TestAGuaranteeWithoutItsTestIsNoticed(t *testing.T) {
	in := tree{root: ".", packages: map[string]*testPackage{}}
	for row, want := range map[string]string{
		"| A1 | it holds | verified | `belay.TestImportRules` |":                                 "",
		"| A1 | it holds | verified | `belay.TestLaw/deny beats ask beats allow` |":              "",
		"| A1 | it holds | verified | `storetest: a stale append writes nothing` |":              "",
		"| A1 | it holds | verified | `internal/core/thread.TestScenarios/crash` |":              "",
		"| A1 | it holds | implemented | |":                                                      "",
		"| A1 | it will hold | required | the part that brings it |":                             "",
		"| A1 | it holds | verified | a good feeling |":                                          "no test is named",
		"| A1 | it holds | verified | `belay.TestNobodyWroteThis` |":                             "has no test",
		"| A1 | it holds | verified | `nowhere.TestX` |":                                         "there is no package",
		"| A1 | it holds | verified | `belay.TestLaw/two and two are five` |":                    "nothing in . is called that",
		"| A1 | it holds | verified | `storetest: a stale append writes something` |":            "is called that",
		"| A1 | it holds | verified | `internal/core/thread.TestScenarios/sunshine` |":           "is called that",
		"| A1 | it holds | verified | `make test` |":                                             "is neither",
		"| A1 | it will hold | required | |":                                                     "which part brings it",
		"| A1 | it will hold | required | `belay.TestImportRules` |":                             "names no test",
		"| A1 | it holds | surely | `belay.TestImportRules` |":                                   "is no state",
		"| A1 | | verified | `belay.TestImportRules` |":                                          "promises nothing",
		"| A1 | it holds | verified | `belay.TestImportRules` |\n| A1 | again | implemented | |": "is taken",
		"| A1 | a column | is missing |":                                                         "a row that isn't",
		"| first | it holds | implemented | |":                                                   "a row that isn't",
	} {
		problems, _ := checkGuarantees(row, in)
		got := strings.Join(problems, "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", row, got, want)
		}
	}
}
