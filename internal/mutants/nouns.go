package main

var nounMutants = []mutant{
	{breaks: "an event may claim another id than its place gives it",
		edits:  []edit{{"event/event.go", "if w.EventID != e.ID() {", "if false {"}},
		caught: []suite{{"./event", "EventID"}}},
	{breaks: "what this build doesn't know is dropped when it is read",
		edits:  []edit{{"event/event.go", "return Unknown{Type: name, Raw: bytes.Clone(raw)}, nil", "return Unknown{Type: name, Raw: []byte(\"{}\")}, nil"}},
		caught: []suite{{"./event", "Unknown"}}},
	{breaks: "a provider's stream that was cut off looks finished",
		edits:  []edit{{"internal/engine/callmodel.go", `return &model.Error{Class: "transient", Message: "the provider's stream ended in the middle of the answer"}`, "return nil"}},
		caught: []suite{engineTests}},
	{breaks: "a scripted answer depends on who asked before",
		edits:  []edit{{"internal/model/scripted/provider.go", `fmt.Sprintf("scripted_%d_%d", a.answer, i+1)`, `fmt.Sprintf("scripted_%p_%d", a, i+1)`}},
		caught: []suite{{"./internal/model/scripted", "Another|Laws"}}},
}
