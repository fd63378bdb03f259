package agentfile_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// Three npm packages that carry agents, as tools/agentpackages gets them: every file is
// listed, with what is wrong with it.
func TestAgentsOfPublishedPackagesAreListed(t *testing.T) {
	for _, c := range []struct {
		name, below   string
		files, usable int
		codes         map[string]int
	}{
		{"cc-sessions-0.3.6", "package/cc_sessions/agents/", 5, 5, nil},
		{"oh-my-claude-sisyphus-5.5.0", "package/agents/", 19, 19, map[string]int{agentfile.CodeUnknownKey: 19}},
		{"claude-flow-3.43.0", "package/.claude/agents/", 108, 96, map[string]int{agentfile.CodeAmbiguous: 12}},
	} {
		to := t.TempDir()
		unpack(t, published(t, c.name), c.below, to)
		cat := agentfile.Open([]agentfile.Place{{Dir: to, Origin: agentfile.User}})
		usable, codes := 0, map[string]int{}
		for _, a := range cat.All {
			if a.Usable() {
				usable++
			}
			for _, f := range a.Findings {
				codes[f.Code]++
			}
			if a.Name == "" || a.Description == "" || len(a.Instructions) < 50 {
				t.Errorf("%s: %q, %q, %d bytes", a.Path, a.Name, a.Description, len(a.Instructions))
			}
		}
		if len(cat.All) != c.files || usable != c.usable {
			t.Errorf("%s: %d files, %d usable, %v", c.name, len(cat.All), usable, codes)
		}
		for code, n := range c.codes {
			if codes[code] != n {
				t.Errorf("%s: %d times %s", c.name, codes[code], code)
			}
		}
		if c.files < 100 {
			continue
		}
		a, err := cat.Find("code-goal-planner") // whose front matter is no YAML
		if err != nil || !strings.HasSuffix(a.Description, "</example>") {
			t.Errorf("%v %v", a, err)
		}
		if _, err := cat.Find("database-specialist"); err == nil || !strings.Contains(err.Error(), agentfile.CodeAmbiguous) {
			t.Errorf("a name that two files have: %v", err)
		}
	}
}

// The skills of a published package are listed, each with its files.
func TestSkillsOfAPublishedPackageAreListed(t *testing.T) {
	to := t.TempDir()
	unpack(t, published(t, "oh-my-claude-sisyphus-5.5.0"), "package/skills/", to)
	all := agentfile.OpenSkills([]agentfile.Place{{Dir: to, Origin: agentfile.User}}).All
	files := 0
	for _, s := range all {
		if !s.Usable() || s.Description == "" || len(s.Instructions) < 200 || s.Name != filepath.Base(filepath.Dir(s.Path)) {
			t.Errorf("%s: %q, %d bytes, %v", s.Path, s.Description, len(s.Instructions), s.Findings)
		}
		for _, f := range s.Findings {
			if f.Level == agentfile.Error {
				t.Errorf("%v", f)
			}
		}
		files += len(s.List())
	}
	if len(all) != 43 || files != 35 {
		t.Errorf("%d skills with %d files", len(all), files)
	}
}

// published is the archive of a package, which is the one that the sums name.
func published(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("BELAY_AGENTPACKAGES")
	raw, err := os.ReadFile(filepath.Join(dir, name+".tgz"))
	needs.Facility(t, "node", dir != "" && err == nil, "tools/agentpackages DIR gets them, and BELAY_AGENTPACKAGES names DIR")
	sums, err := os.ReadFile(filepath.Join("testdata", "packages.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	if sum := strings.TrimPrefix(string(belay.DigestOf(raw)), "sha256:"); !strings.Contains(string(sums), sum+"  "+name+".tgz\n") {
		t.Fatalf("%s is another file", name)
	}
	return raw
}

// unpack writes the files of an archive below a folder.
func unpack(t *testing.T, raw []byte, below, to string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if rel, ok := strings.CutPrefix(h.Name, below); ok && h.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[rel] = string(text)
		}
	}
	write(t, to, files)
}
