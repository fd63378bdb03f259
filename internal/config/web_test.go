package config

import (
	"testing"

	"github.com/belay-run/belay"
)

// TestTheWebToolsAreSetByThePersonAlone: not by a workspace, also one that is trusted,
// not by a variable, and a key that stands in the file itself is refused unseen.
func TestTheWebToolsAreSetByThePersonAlone(t *testing.T) {
	in, _ := folder(t, map[string]string{
		ofPerson + "belay.yaml": "web-reach: loopback\nweb-robots: obey\nweb-search: searxng\nweb-search-url: http://127.0.0.1:8888/\n",
		"ws/.belay/belay.yaml":  "web-reach: private\nweb-search-url: https://evil.example\nweb-search-key: env:OTHER_KEY\n",
	})
	in.Vars = append(in.Vars, "BELAY_WEB_REACH=private")
	w := Resolve(t.Context(), in)
	web, err := w.Web()
	if err != nil || web.Reach != "loopback" || !web.Robots || web.Engine != "searxng" || web.Base().String() != "http://127.0.0.1:8888" || web.keyPlace() != "" {
		t.Errorf("%+v, %v", web, err)
	}
	l, err := w.Layers(nil)
	if err != nil || len(l.Ignored()) != 3 {
		t.Errorf("ignored: %v, %v", l.Ignored(), err)
	}
	if key, err := web.Key(); key != "" || err != nil {
		t.Errorf("a key %q, %v", key, err)
	}
	for text, code := range map[string]belay.Code{
		"web-search: searxng\n":                             belay.CodeBadConfig,
		"web-search-key: sk-1234567890abcdefgh\n":           belay.CodeBadConfig,
		"web-search-url: https://u:p@s.example\n":           belay.CodeUsage,
		"web-reach: everywhere\n":                           belay.CodeUsage,
		"web-search: tavily\nweb-search-key: env:TAVILY\n":  "",
		"web-search: brave\nweb-search-url: https://a/b/\n": "",
		"web-search: native\n":                              "",
	} {
		in, _ := folder(t, map[string]string{ofPerson + "belay.yaml": text})
		if _, err := Resolve(t.Context(), in).Web(); codeOf(err) != code {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTheCacheIsThePersons: how much memory a process takes is no workspace's to say.
func TestTheCacheIsThePersons(t *testing.T) {
	for text, want := range map[string]int{"": 100, "cache-mb: 7\n": 7, "cache-mb: 0\n": 0} {
		in, _ := folder(t, map[string]string{ofPerson + "belay.yaml": text, "ws/.belay/belay.yaml": "cache-mb: 9\n"})
		in.Vars = append(in.Vars, "BELAY_CACHE_MB=8")
		mb, err := Resolve(t.Context(), in).CacheMB()
		if mb != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v", text, mb, err)
		}
	}
}

// TestAnEnginesKeyIsHidden before it is used, wherever it is.
func TestAnEnginesKeyIsHidden(t *testing.T) {
	for text, name := range map[string]string{"web-search: brave\n": "BRAVE_API_KEY", "web-search: tavily\nweb-search-key: env:MINE\n": "MINE"} {
		in, _ := folder(t, map[string]string{ofPerson + "belay.yaml": text})
		in.Vars = append(in.Vars, name+"=key-of-the-engine-1")
		web, err := Resolve(t.Context(), in).Web()
		if err != nil {
			t.Fatal(err)
		}
		if key, err := web.Key(); key != "key-of-the-engine-1" || err != nil || !in.Secrets.Holds([]byte("x key-of-the-engine-1 x")) {
			t.Errorf("%s: %q, %v", name, key, err)
		}
	}
	in, _ := folder(t, map[string]string{ofPerson + "belay.yaml": "web-search: native\n"})
	if web, err := Resolve(t.Context(), in).Web(); err != nil || web.Engine != "native" || web.keyPlace() != "" {
		t.Errorf("the vendor's own: %+v, %v", web, err)
	} else if key, err := web.Key(); key != "" || err != nil {
		t.Errorf("the vendor's own has a key %q, %v", key, err)
	}
	in, _ = folder(t, map[string]string{ofPerson + "belay.yaml": "web-search: serper\n"})
	web, err := Resolve(t.Context(), in).Web()
	if _, keyErr := web.Key(); err != nil || codeOf(keyErr) != belay.CodeNoKey {
		t.Errorf("without a key: %v, %v", err, keyErr)
	}
}
