package conformance

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// leaksRule is a rule of gitleaks.
type leaksRule struct {
	ID          string
	Regex       string
	SecretGroup int
}

// unknown are rules whose forms internal/secret doesn't know, and why.
var unknown = map[string]string{
	"authress-service-client-access-key":     "its key is in its middle",
	"vault-service-token":                    "its older form has a key of two characters",
	"aws-amazon-bedrock-api-key-short-lived": "the rule has the beginning alone",
	"azure-ad-client-secret":                 "its key is in its middle; its name gives it away",
	"facebook-access-token":                  "it begins with a number",
	"flutterwave-public-key":                 "it is public",
	"flutterwave-encryption-key":             "twelve characters without an end",
	"freemius-secret-key":                    "any text in the right place",
	"kubernetes-secret-yaml":                 "any text in the right place",
	"maxmind-license-key":                    "its key is its end",
	"nuget-config-password":                  "any text in the right place",
	"curl-auth-header":                       "any text in the right place",
	"curl-auth-user":                         "any text in the right place",
	"grafana-api-key":                        "base64 in the wrong case isn't one",
	"sourcegraph-access-token":               "forty digits are a hash too",
	"jwt":                                    "a random text isn't one",
	"jwt-base64":                             "a random text isn't one",
	"private-key":                            "a random text isn't one",
	"gitlab-session-cookie":                  "known in a header only",
	"sidekiq-sensitive-url":                  "known by its whole address",
}

// TestWhatGitleaksFindsIsTakenOut makes texts of the rules of gitleaks that know a
// form by its own characters, and looks for what is left of them.
func TestWhatGitleaksFindsIsTakenOut(t *testing.T) {
	file := rules(t)
	var s secret.Scrubber
	s.Look(secret.Known{})
	g := generator{rand.New(rand.NewPCG(5, 6))}
	known := 0
	for _, rule := range file {
		if rule.Regex == "" || strings.Contains(rule.Regex, `[\w.-]{0,50}?`) || unknown[rule.ID] != "" {
			continue
		}
		known++
		re, err := syntax.Parse(rule.Regex, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			text := strings.Trim(g.text(re), "'\"`; \n\r\t")
			text = strings.TrimSuffix(strings.TrimSuffix(text, `\n`), `\r`)
			got := s.String("x " + text + " y")
			end := text[len(text)*2/3:]
			if !strings.Contains(got, "[redacted:") || len(end) > 6 && strings.Contains(got, end) {
				t.Errorf("%s: %s becomes %s", rule.ID, text, got)
				break
			}
		}
	}
	if known < 90 {
		t.Errorf("%d rules were looked at", known)
	}
}

// rules are those of gitleaks v8.30.1, from its module: requiring it would bring some
// sixty modules here.
func rules(t *testing.T) []leaksRule {
	get := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/zricethezav/gitleaks/v8@v8.30.1")
	get.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod")
	said, err := get.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(said, &module)
	}
	needs.Facility(t, "gitleaks", err == nil, "go mod download github.com/zricethezav/gitleaks/v8@v8.30.1 puts it into the module cache")
	raw, err := os.ReadFile(filepath.Join(module.Dir, "config", "gitleaks.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rules []leaksRule }
	if err := toml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Rules
}

// generator makes texts that an expression matches.
type generator struct{ r *rand.Rand }

func (g generator) text(re *syntax.Regexp) string {
	var b strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 { // as vendors write it
			text = strings.ToLower(text)
		}
		b.WriteString(text)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('.')
	case syntax.OpCharClass:
		b.WriteRune(g.character(re))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			b.WriteString(g.text(sub))
		}
	case syntax.OpAlternate:
		return g.text(re.Sub[g.r.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := re.Min, re.Max
		switch re.Op {
		case syntax.OpStar:
			least, most = 0, 8
		case syntax.OpPlus:
			least, most = 4, 12
		case syntax.OpQuest:
			least, most = 0, 1
		}
		if most < 0 || most > least+40 {
			most = least + 40
		}
		for range least + g.r.IntN(most-least+1) {
			b.WriteString(g.text(re.Sub[0]))
		}
	}
	return b.String()
}

// character is one of a class: letters and digits where it has them, as keys do.
func (g generator) character(re *syntax.Regexp) rune {
	const usual = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	in := func(r rune) bool {
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= r && r <= re.Rune[i+1] {
				return true
			}
		}
		return len(re.Rune) == 0
	}
	all := slices.DeleteFunc([]rune(usual), func(r rune) bool { return !in(r) })
	if len(all) == 0 {
		return re.Rune[0]
	}
	return all[g.r.IntN(len(all))]
}
