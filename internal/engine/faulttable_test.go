package engine_test

import (
	"maps"
	"strconv"
	"time"

	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// fault is something that providers do. The server plays the scenes, one for a
// request, and then does its work; or the last of them for ever.
type fault struct {
	name     string
	scenes   []modelserver.Scene
	forever  bool
	talk     bool // a plain answer ends the turn
	textArgs bool // only where arguments are text: elsewhere what is no JSON breaks the whole event
	anytime  bool // when something comes follows from how many bytes a protocol has
	twice    bool // the model says its text twice, or nothing tells that from a vendor that does

	secure    bool   // the vendor is reached over TLS
	base      string // where the provider is sent instead
	unknownCA bool   // nobody vouches for the vendor's certificate
}

// once is a fault of the first request, always one of every request.
func once(name string, s modelserver.Scene) fault {
	return fault{name: name, scenes: []modelserver.Scene{s}}
}

func always(name string, s modelserver.Scene) fault {
	return fault{name: name, scenes: []modelserver.Scene{s}, forever: true}
}

// status is an answer with another status than 200.
func status(code int, class string, header ...string) modelserver.Scene {
	s := modelserver.Scene{Fault: modelserver.Fault{Status: code, Class: class}}
	for i := 0; i+1 < len(header); i += 2 {
		if s.Fault.Header == nil {
			s.Fault.Header = map[string]string{}
		}
		s.Fault.Header[header[i]] = header[i+1]
	}
	return s
}

// struck is the work with a fault in its stream.
func struck(f modelserver.Fault) modelserver.Scene {
	s := work
	s.Fault = f
	return s
}

// amid is a fault at the third piece of the text.
func amid(k modelserver.Kind) modelserver.Scene {
	return struck(modelserver.Fault{Kind: k, Upon: "six"})
}

// answer is one that is whole.
func answer(text, stop string, calls ...model.Call) modelserver.Scene {
	return modelserver.Scene{Scene: modeltest.Scene{Text: text, Stop: stop, Calls: calls}}
}

// with is a scene whose fault is changed.
func with(s modelserver.Scene, change func(*modelserver.Fault)) modelserver.Scene {
	s.Fault.Header = maps.Clone(s.Fault.Header)
	change(&s.Fault)
	return s
}

// faults is the table. Its names are files in testdata/faults.
var faults = append(statuses(), []fault{
	once("none", work),
	always("status-503-always", status(503, "transient")),
	once("rate-seconds", status(429, "rate_limited", "Retry-After", "7")),
	once("rate-date", status(429, "rate_limited", "Retry-After", "Sat, 01 Jan 2000 00:00:30 GMT")),
	once("rate-milliseconds", status(429, "rate_limited", "Retry-After-Ms", "2500")),
	once("rate-too-long", status(429, "rate_limited", "Retry-After", "660")),
	once("unavailable-seconds", status(503, "transient", "Retry-After", "20")),
	once("overflow", status(400, "overflow")),
	once("overflow-no-message", with(status(400, ""), func(f *modelserver.Fault) { f.Body = `{"error":{"code":"context_length_exceeded"}}` })),
	once("filtered", status(400, "refused")),
	once("status-no-json", with(status(502, ""), func(f *modelserver.Fault) { f.Body = "<html><b>Bad gateway</b></html>" })),

	// Silence.
	once("hang-before", modelserver.Scene{Fault: modelserver.Fault{Before: -1}}),
	always("hang-before-always", modelserver.Scene{Fault: modelserver.Fault{Before: -1}}),
	once("hang-amid", amid(modelserver.Hang)),
	once("alive-amid", amid(modelserver.Alive)),
	once("late", with(work, func(f *modelserver.Fault) { f.Before = 110 * time.Second })),
	{name: "slow-drip", scenes: []modelserver.Scene{struck(modelserver.Fault{Drip: 40 * time.Millisecond})}, anytime: true},

	// Connections and streams that break off.
	once("cut-before", struck(modelserver.Fault{Kind: modelserver.Cut})),
	once("cut-amid", amid(modelserver.Cut)),
	once("cut-in-a-line", amid(modelserver.CutLine)),
	always("cut-always", amid(modelserver.Cut)),
	{name: "cut-thrice", scenes: []modelserver.Scene{amid(modelserver.Cut), amid(modelserver.CutLine), amid(modelserver.Hang)}},
	{name: "cut-after-a-call", scenes: []modelserver.Scene{with(answer("", "tool_calls", model.Call{Name: "look", Args: `{"n":111111}`}, model.Call{Name: "look", Args: `{"n":222222}`}),
		func(f *modelserver.Fault) { f.Kind, f.Upon = modelserver.Cut, "222" })}},
	once("cut-in-a-call", struck(modelserver.Fault{Kind: modelserver.Cut, Upon: "654"})),
	once("end-amid", amid(modelserver.End)),
	once("missing-near-the-end", struck(modelserver.Fault{Kind: modelserver.Missing, At: -3})),
	once("end-without-last", struck(modelserver.Fault{Kind: modelserver.End, At: -1})),

	// What comes is not what should.
	once("error-amid", modelserver.Scene{Scene: modeltest.Scene{Text: said, Parts: 4, Fail: "transient"}}),
	once("error-rate-amid", modelserver.Scene{Scene: modeltest.Scene{Text: said, Parts: 4, Fail: "rate_limited"}}),
	once("error-overflow-amid", modelserver.Scene{Scene: modeltest.Scene{Text: said, Parts: 4, Fail: "overflow"}}),
	once("garbage", amid(modelserver.Garbage)),
	once("half-json", amid(modelserver.HalfJSON)),
	{name: "duplicate-text", scenes: []modelserver.Scene{amid(modelserver.Duplicate)}, twice: true},
	once("missing-text", amid(modelserver.Missing)),
	once("duplicate-call", struck(modelserver.Fault{Kind: modelserver.Duplicate, Upon: "look"})),
	once("duplicate-arguments", struck(modelserver.Fault{Kind: modelserver.Duplicate, Upon: "654"})),
	{name: "missing-arguments", scenes: []modelserver.Scene{struck(modelserver.Fault{Kind: modelserver.Missing, Upon: "654"})}, twice: true},
	once("duplicate-last", struck(modelserver.Fault{Kind: modelserver.Duplicate, At: -1})),
	once("comments", amid(modelserver.Comments)),
	once("gzip", struck(modelserver.Fault{Gzip: true})),
	once("wrong-type", struck(modelserver.Fault{Header: map[string]string{"Content-Type": "text/html"}})),
	once("no-stream", with(status(200, ""), func(f *modelserver.Fault) {
		f.Header, f.Body = map[string]string{"Content-Type": "application/json"}, `{"object":"chat.completion"}`
	})),
	once("unknown-encoding", with(status(200, ""), func(f *modelserver.Fault) {
		f.Header, f.Body = map[string]string{"Content-Type": "text/event-stream", "Content-Encoding": "br"}, "\x1b\x03\x00\x00\x8d\xa3"
	})),
	once("no-http", modelserver.Scene{Fault: modelserver.Fault{Kind: modelserver.NoHTTP}}),

	// What the model does.
	once("empty", answer("", "stop")),
	always("empty-always", answer("", "stop")),
	once("unknown-tool", answer("", "tool_calls", model.Call{Name: "teleport", Args: `{"to":"moon"}`})),
	{name: "broken-arguments", scenes: []modelserver.Scene{answer("", "tool_calls", model.Call{Name: "look", Args: `{"n":98`})}, textArgs: true},
	once("wrong-arguments", answer("", "tool_calls", model.Call{Name: "look", Args: `{"n":"many"}`})),
	once("length", answer("The answer is a long one, and", "length")),
	{name: "length-talk", scenes: []modelserver.Scene{answer("One to six.", "length"), answer("And seven.", "stop")}, talk: true},
	{name: "length-in-a-call", scenes: []modelserver.Scene{answer("", "length", model.Call{Name: "look", Args: `{"n":98`})}, textArgs: true},
	once("refusal", answer("I won't.", "refused")),
	once("refusal-silent", answer("", "refused")),
	{name: "refusal-talk", scenes: []modelserver.Scene{answer("I won't.", "refused")}, talk: true},
	always("endless-same", answer("Again.", "tool_calls", model.Call{Name: "look", Args: `{"n":1}`})),
	{name: "endless-different", scenes: endless(), forever: true},

	// Where the request goes.
	once("redirect-elsewhere", status(307, "", "Location", "http://"+strangeHost+"/v1/chat/completions")),
	once("redirect-moved", status(301, "", "Location", "http://"+strangeHost+"/")),
	once("redirect-same-host", status(308, "", "Location", "/v2")),
	{name: "tls", secure: true, base: "https://" + vendorHost + "/v1"},
	{name: "tls-unknown-ca", secure: true, base: "https://" + vendorHost + "/v1", unknownCA: true},
	{name: "tls-other-name", secure: true, base: "https://" + mirrorHost + "/v1"},
	{name: "unreachable", base: "http://" + nobodysHost + "/v1"},
}...)

// statuses are answers that say in their status what went wrong.
func statuses() (out []fault) {
	for _, s := range []struct {
		code  int
		class string
	}{{400, "bad_request"}, {401, "auth"}, {403, "auth"}, {404, "bad_request"}, {408, "transient"}, {409, "transient"}, {413, "bad_request"}, {422, "bad_request"}, {429, "rate_limited"}, {500, "internal"}, {502, "transient"}, {503, "transient"}, {504, "transient"}, {529, "transient"}} {
		out = append(out, once("status-"+strconv.Itoa(s.code), status(s.code, s.class)))
	}
	return out
}

// endless is a model that always finds another thing to look at.
func endless() (out []modelserver.Scene) {
	for i := range 20 {
		out = append(out, answer("", "tool_calls", model.Call{Name: "look", Args: `{"n":` + strconv.Itoa(i) + `}`}))
	}
	return out
}
