package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
)

var chatOnly = Known{Names: []string{"mode"}, Protocols: Protocols{"openai-chat"}}

func TestProvidersAreRead(t *testing.T) {
	f, err := ReadConfig("f", []byte(`providers:
  local:
    protocol: openai-chat
    base-url: http://127.0.0.1:11434/v1
    model: small
    key: env:LOCAL_KEY
    headers: {x-team: a, Authorization: "Bearer secret:gate", Api-Version: 2024-10-21}
    limits: {requests: 60, tokens: 100000, concurrent: 4, first: 5m, idle: 90s, total: 30m}
  openai: {key: secret:work}
  vault: {key: "file:~/keys/a b"}
`), chatOnly)
	want := []Provider{
		{Name: "local", Where: "f:2:3", Protocol: "openai-chat", BaseURL: "http://127.0.0.1:11434/v1", Model: "small",
			Key: Reference{"env", "LOCAL_KEY", "f:6:10"},
			Headers: []Header{
				{Name: "X-Team", Text: "a", Where: "f:7:23"},
				{Name: "Authorization", Text: "Bearer ", Ref: Reference{"secret", "gate", "f:7:41"}, Where: "f:7:41"},
				{Name: "Api-Version", Text: "2024-10-21", Where: "f:7:76"},
			},
			Limits: Limits{Requests: 60, Tokens: 100_000, Concurrent: 4, First: 5 * time.Minute, Idle: 90 * time.Second, Total: 30 * time.Minute}},
		{Name: "openai", Where: "f:9:3", Key: Reference{"secret", "work", "f:9:17"}},
		{Name: "vault", Where: "f:10:3", Key: Reference{"file", "~/keys/a b", "f:10:16"}},
	}
	if d := cmp.Diff(want, f.Providers); d != "" || err != nil {
		t.Error(err, d)
	}
}

// TestAKeyInAFileIsRefused: what may be a secret is refused where it stands,
// and the error doesn't say it again.
// Guarantee: X11.
func TestAKeyInAFileIsRefused(t *testing.T) {
	const planted = "sk-planted-0123456789"
	for text, want := range map[string]string{
		"providers: {a: {key: " + planted + "}}\n":                                  "f:1:22: a key must not be written in this file",
		"providers: {a: {key: env:" + planted + "}}\n":                              "f:1:22: a key must not be written in this file",
		"providers: {a: {key: \"env: " + planted + "\"}}\n":                         "a key must not be written in this file",
		"providers: {a: {key: {x: " + planted + "}}}\n":                             "want one value here",
		"providers: {a: {headers: {Authorization: Bearer " + planted + "}}}\n":      "f:1:42: Authorization holds a secret",
		"providers: {a: {headers: {x-api-key: " + planted + "}}}\n":                 "X-Api-Key holds a secret",
		"providers: {a: {headers: {Api-Key: " + planted + "}}}\n":                   "Api-Key holds a secret",
		"providers: {a: {headers: {X-Goog-Api-Key: " + planted + "}}}\n":            "X-Goog-Api-Key holds a secret",
		"providers: {a: {headers: {Cookie: " + planted + "}}}\n":                    "Cookie holds a secret",
		"providers: {a: {headers: {Proxy-Authorization: " + planted + "}}}\n":       "Proxy-Authorization holds a secret",
		"providers: {a: {headers: {Ocp-Apim-Subscription-Key: " + planted + "}}}\n": "Ocp-Apim-Subscription-Key holds a secret",
		"providers: {a: {headers: {X-Auth-Token: " + planted + "}}}\n":              "X-Auth-Token holds a secret",
	} {
		_, err := ReadConfig("f", []byte(text), chatOnly)
		e, ok := err.(*belay.Error)
		if !ok || e.Code != belay.CodeBadConfig || !strings.Contains(e.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		} else if strings.Contains(e.Error()+e.Hint, planted) {
			t.Errorf("%q: the error says the key: %v (%s)", text, err, e.Hint)
		} else if !strings.Contains(want, "one value") && !strings.Contains(e.Hint, "belay secret set") {
			t.Errorf("%q: the hint leads nowhere: %s", text, e.Hint)
		}
	}
}

func TestMistakesInProvidersAreToldWithTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"providers: [a]\n":                                        "want providers by name",
		"providers: {A: {}}\n":                                    `f:1:13: "A" can't be the name`,
		"providers: {scripted: {}}\n":                             "can't be the name",
		"providers: {\"a:b\": {}}\n":                              "can't be the name",
		"providers: {a: b}\n":                                     "f:1:13: want the provider's fields",
		"providers: {a: {protocol: gopher}}\n":                    `f:1:27: "gopher" is none of the protocols`,
		"providers: {a: {url: x}}\n":                              `f:1:17: a provider has no field "url"`,
		"providers: {a: {limits: 5}}\n":                           "want limits by name",
		"providers: {a: {limits: {speed: 5}}}\n":                  `f:1:26: there is no limit "speed"`,
		"providers: {a: {limits: {requests: none}}}\n":            `"none" is not a number from 1`,
		"providers: {a: {limits: {concurrent: 0}}}\n":             `"0" is not a number from 1`,
		"providers: {a: {limits: {first: 5}}}\n":                  `"5" is not a length of time from 1s to 24h`,
		"providers: {a: {base-url: [x]}}\n":                       "want one value here",
		"providers: {a: {headers: x}}\n":                          "want header fields by name",
		"providers: {a: {headers: {Host: x}}}\n":                  `"Host" is no header field`,
		"providers: {a: {headers: {\"a b\": x}}}\n":               `"a b" is no header field`,
		"providers: {a: {headers: {X-A: \"one\\ntwo\"}}}\n":       "one line of text",
		"providers: {a: {headers: {content-length: 5}}}\n":        `"content-length" is no header field`,
		"providers: {a: {model: m}, a: {model: n}}\n":             "a",
		"providers: {a: {model: {b: c}}}\n":                       "want one value here",
		"providers: {a: {headers: {Transfer-Encoding: chunk}}}\n": "no header field",
	} {
		_, err := ReadConfig("f", []byte(text), chatOnly)
		if belay.CodeOf(err) != belay.CodeBadConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
