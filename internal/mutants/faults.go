package main

// tables are the faults of providers and what must come of them.
var tables = suite{"./internal/engine", "TestFaultsOfProviders"}

var faultMutants = []mutant{
	{breaks: "faults: a redirect is followed",
		edits:  []edit{{"internal/dial/dial.go", "return http.ErrUseLastResponse", "return nil"}},
		caught: []suite{tables}},
	{breaks: "faults: what came before a stream broke off is forgotten",
		edits:  []edit{{"internal/engine/callmodel.go", "\tif a.text.Len() > 0 {\n", "\tif false {\n"}},
		caught: []suite{tables}},
	{breaks: "faults: a silent stream is waited for",
		edits:  []edit{{"internal/model/wire/wire.go", "func() { stop(errIdle) }", "func() {}"}},
		caught: []suite{tables}},
	{breaks: "faults: an answer that doesn't begin is waited for",
		edits:  []edit{{"internal/model/wire/wire.go", "func() { stop(errFirst) }", "func() {}"}},
		caught: []suite{tables}},
	{breaks: "faults: an answer may be as long as it likes",
		edits:  []edit{{"internal/engine/callmodel.go", "maxAnswer   = 8 << 20", "maxAnswer   = 80 << 20"}},
		caught: []suite{{"./internal/engine", "TestAGigabyteIsNotKept"}}},
}
