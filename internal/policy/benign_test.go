package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// benign are ten runs as agents make them: a line is a command, "edit PATH" and
// "read PATH" are file tools, "page" reads a web page.
var benign = []string{
	// a bug in a Go package
	"ls\ngit status\ngit log --oneline -5\nread go.mod\ngrep -rn 'func Parse' --include=*.go .\nread parse.go\nread parse_test.go\ngo test ./...\nedit parse_test.go\ngo test -run TestParse .\nedit parse.go\ngo test ./...\ngo vet ./...\ngit diff\ngit diff --stat",
	// finding one's way through a repository
	"ls -la\ncat README.md\nfind . -name '*.go' -not -path './vendor/*' | head -50\nwc -l $(git ls-files '*.go')\nread main.go\nread server.go\ngrep -n TODO -r src | wc -l\ngit log --since=2.weeks --stat | head -40\nhead -50 docs/design.md\ntail -20 CHANGELOG.md\ngit show HEAD --stat\ngit blame -L 1,20 main.go\ndu -sh .\nread docs/api.md",
	// a Python test
	"pwd\nls tests\nread tests/test_user.py\nread app/user.py\npython3 -m pytest tests/test_user.py -q\nedit app/user.py\npython3 -m pytest tests/test_user.py -q\nread app/models.py\nedit app/models.py\npython3 -m pytest -q\ngit diff app\ngit status --short",
	// a web front end
	"cat package.json\nls src/components\nread src/components/Button.tsx\ngrep -rn \"Button\" src --include=*.tsx\nedit src/components/Button.tsx\nnpm test -- Button\nedit src/components/Button.test.tsx\nnpm test -- Button\nnpm run lint\ngit diff --name-only\nread src/index.css\nedit src/index.css\nnpm run build",
	// documentation
	"read README.md\nread docs/usage.md\ngrep -n '^## ' docs/usage.md\nedit docs/usage.md\nedit README.md\nedit docs/faq.md\ngit diff --word-diff docs | head -60\nwc -w docs/*.md\nread docs/faq.md\nedit docs/faq.md",
	// a refactoring
	"git grep -n oldName\nread a.go\nread b.go\nread c.go\nedit a.go\nedit b.go\nedit c.go\ngit grep -n oldName | wc -l\ngo build ./...\ngo test ./...\ngofmt -l .\ngit diff --stat\nsort names.txt | uniq -c | sort -rn | head\nedit names.txt",
	// looking into a failing build
	"git log -3\nmake test\ncat Makefile\nread internal/x/x.go\nsed -n 10,40p internal/x/x.go\nawk '{print $1}' build.log | sort | uniq -c\ngrep -c FAIL build.log\ntail -100 build.log | grep -n error\nedit internal/x/x.go\nmake test\ngit diff",
	// data
	"ls data\nhead -3 data/in.csv\nwc -l data/in.csv\ncut -d, -f2 data/in.csv | sort | uniq -c | head\nread scripts/clean.py\nedit scripts/clean.py\npython3 scripts/clean.py data/in.csv\nhead -3 data/out.csv\ndiff data/in.csv data/out.csv | head\njq . data/meta.json\nread data/meta.json",
	// with a page of documentation
	"read client.go\npage\nedit client.go\ngo test ./...\nread client_test.go\nedit client_test.go\ngo test ./...\ngit diff --stat\ngrep -n retry client.go\nread retry.go\nedit retry.go\ngo test ./...",
	// a commit at the end
	"git status\nread x.go\nedit x.go\ngo test ./...\ngit diff\ngit add x.go\ngit commit -m 'x: mend it'\ngit log -1 --stat\ngit status --short\nls",
}

// benignCall is a line as a call.
func benignCall(text string) Request {
	if verb, path, ok := strings.Cut(text, " "); ok && (verb == "read" || verb == "edit") {
		r := Request{Tool: belay.ToolSpec{Name: verb, ReadOnly: verb == "read", PathArg: "path", Access: belay.Read}, Paths: []string{path}, Workspace: "/ws"}
		if verb == "edit" {
			r.Tool.Access = belay.Write
		}
		return r
	}
	if text == "page" {
		return Request{Tool: belay.ToolSpec{Name: "web_fetch", ReadOnly: true, Untrusted: true, HostArg: "url", Capabilities: []string{"network"}}, Args: json.RawMessage(`{"url":"https://docs.example"}`), Workspace: "/ws"}
	}
	return runLine(text)
}

// TestAsksOfBenignRuns counts how often a person is asked. She answers "for this
// session" the first time that a tool asks, which is what the terminal offers.
func TestAsksOfBenignRuns(t *testing.T) {
	for _, as := range []struct {
		mode           belay.Mode
		level, network string
		limit          float64
	}{
		{belay.ModeDefault, "", "", 17}, {belay.ModeAcceptEdits, "", "", 10}, {belay.ModeAuto, "", "", 5}, {belay.ModeUntrusted, "", "", 40},
		{belay.ModeDefault, "L2", "none", 15}, {belay.ModeOnRequest, "L2", "none", 1}, // inside a boundary
	} {
		calls, asks, once := 0, 0, 0
		for _, run := range benign {
			var grants []Grant
			taint := []Taint{{Kind: TaintWorkspace, Origin: "/ws", Seq: 1}} // nobody said that they trust it
			for _, text := range strings.Split(run, "\n") {
				r := benignCall(text)
				r.Mode, r.Level, r.Network, r.Taint = as.mode, as.level, as.network, taint
				calls++
				if v := verdictOf(Builtin(), r); v.Decision == Ask {
					once++
				}
				r.Grants = grants
				v := verdictOf(Builtin(), r)
				switch v.Decision {
				case Deny:
					t.Errorf("mode %s denies %q: %s", as.mode, text, v.Reason)
				case Ask:
					asks++
					if !slices.ContainsFunc(grants, func(g Grant) bool { return g.Tool == r.Tool.Name }) {
						grants = append(grants, Grant{Tool: r.Tool.Name, Tier: TierUser, Kind: "answer", By: "user:ann"})
					}
				}
				if r.Tool.Untrusted {
					taint = append(taint, Taint{Kind: "web", Origin: "docs.example", Seq: 2})
				}
			}
		}
		per := func(n int) float64 { return 100 * float64(n) / float64(calls) }
		t.Logf("mode %s, boundary %q: %d calls, asks per 100 calls: %.1f answered for the session, %.1f answered one by one", as.mode, as.level, calls, per(asks), per(once))
		if per(asks) > as.limit {
			t.Errorf("mode %s, boundary %q: more than %v", as.mode, as.level, as.limit)
		}
	}
}
