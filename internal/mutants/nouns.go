package main

var nounMutants = []mutant{
	{breaks: "an event may claim another id than its place gives it",
		edits:  []edit{{"event/event.go", "if w.EventID != e.ID() {", "if false {"}},
		caught: []suite{{"./event", "EventID"}}},
	{breaks: "what this build doesn't know is dropped when it is read",
		edits:  []edit{{"event/event.go", "return Unknown{Type: name, Raw: bytes.Clone(raw)}, nil", "return Unknown{Type: name, Raw: []byte(\"{}\")}, nil"}},
		caught: []suite{{"./event", "Unknown"}}},
	{breaks: "a provider's stream that was cut off looks finished",
		edits:  []edit{{"internal/engine/callmodel.go", `return &model.Error{Class: "transient", Code: "CUT", Message: "the provider's stream ended in the middle of the answer"}`, "return nil"}},
		caught: []suite{engineTests}},
	{breaks: "a script remembers that it was asked before",
		edits: []edit{
			{"internal/model/scripted/provider.go", "type Provider struct{ script *Script }", "type Provider struct {\n\tscript *Script\n\tasked  bool\n}"},
			{"internal/model/scripted/provider.go", "return &Provider{s}", "return &Provider{script: s}"},
			{"internal/model/scripted/provider.go", "c, ok := p.script.choose(r)", "c, ok := p.script.choose(r)\n\t\tok = ok && !p.asked\n\t\tp.asked = true"}},
		caught: []suite{{"./internal/model/scripted", "Another|Laws"}}},
}
