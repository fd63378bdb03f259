package main

var (
	hubTests  = suite{"./internal/live", "Test"}
	readTests = suite{"./internal/read", "Test(APage|Pages|AStream|TheStream|ASnapshot|AReadWaits|TenThousand)"}
)

var readerMutants = []mutant{
	{breaks: "a slow reader's facts are dropped without a word",
		edits:  []edit{{"internal/live/reader.go", "\tif r.at < r.topic.missing {\n\t\treturn nil, behind, nil\n\t}\n", ""}},
		caught: []suite{hubTests}},
	{breaks: "a cursor of another store is taken",
		edits:  []edit{{"internal/live/cursor.go", `sha256.Sum256([]byte(string(runtime) + "\x00" + s.name()))`, `sha256.Sum256([]byte(s.name()))`}},
		caught: []suite{{"./internal/live", "TestCursors"}}},
	{breaks: "a cursor of another stream is taken",
		edits:  []edit{{"internal/live/cursor.go", `sha256.Sum256([]byte(string(runtime) + "\x00" + s.name()))`, `sha256.Sum256([]byte(runtime))`}},
		caught: []suite{{"./internal/live", "TestCursors"}}},
	{breaks: "a cursor from the future is taken",
		edits:  []edit{{"internal/live/reader.go", "if p.position > end {", "if p.position > end+1000 {"}},
		caught: []suite{{"./internal/live", "TestCursors"}}},
	{breaks: "text is shown before its request",
		edits:  []edit{{"internal/live/flow.go", "if f.announced == 0 || !r.scope", "if !r.scope"}},
		caught: []suite{hubTests}},
	{breaks: "text that came before its request's fact is forgotten",
		edits:  []edit{{"internal/live/hub.go", "case f != nil && f.announced == 0:", "case false:"}},
		caught: []suite{{"./internal/live", "Outruns"}}},
	{breaks: "text behind a hole is shown",
		edits:  []edit{{"internal/live/flow.go", "had < t.base && t.durable < t.base", "false"}},
		caught: []suite{{"./internal/live", "Outruns"}}},
	{breaks: "a stream begins with the fact its reader has",
		edits:  []edit{{"internal/live/reader.go", "h.ring[i].position > r.at", "h.ring[i].position >= r.at"}},
		caught: []suite{hubTests}},
	{breaks: "a page forgets the fact at its edge",
		edits:  []edit{{"internal/read/page.go", "v.cursor(w.scope, low+1)", "v.cursor(w.scope, low)"}},
		caught: []suite{readTests}},
	{breaks: "a stale answer doesn't say so",
		edits:  []edit{{"internal/read/fresh.go", "Fresh{Position: at, Stale: true}", "Fresh{Position: at}"}},
		caught: []suite{readTests}},
	{breaks: "a view passes over facts before a deletion that came while it read",
		edits:  []edit{{"internal/view/projector.go", "	return c, err\n}\n\n// folding", "	if n := len(c.Deleted); n > 0 {\n\t\tc.To = max(c.To, c.Deleted[n-1].Position)\n\t}\n	return c, err\n}\n\n// folding"}},
		caught: []suite{{"./internal/view", "TestADeletionHides"}}},
	{breaks: "a deleted session's words come back",
		edits:  []edit{{"internal/search/search.go", "rows[rowKey(t.Session)] = nil", "_ = t"}},
		caught: []suite{{"./internal/search", "Test"}}},
}
