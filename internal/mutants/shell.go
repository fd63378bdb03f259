package main

var (
	corpora    = suite{"./internal/shell", "Corpus"}
	disguises  = suite{"./internal/shell", "Hiding"}
	bashItself = suite{"./internal/shell", "BashStarts"}
)

var shellMutants = []mutant{
	{breaks: "an option that isn't known leaves a command read-only",
		edits:  []edit{{"internal/shell/options.go", "case !t.any:", "case false:"}},
		caught: []suite{corpora}},
	{breaks: "what env starts isn't looked at",
		edits:  []edit{{"internal/shell/wrapper.go", "\tcase \"su\", \"runuser\":\n", "\tcase \"env\":\n\t\ts.finish()\n\tcase \"su\", \"runuser\":\n"}},
		caught: []suite{corpora}},
	{breaks: "a substitution's commands don't count",
		edits:  []edit{{"internal/shell/walk.go", "\tr.list(c.Stmts, sc.inner())\n}\n\n// knotted tells", "}\n\n// knotted tells"}},
		caught: []suite{bashItself}},
	{breaks: "arithmetic on any name passes",
		edits:  []edit{{"internal/shell/expansion.go", "return r.facts.numeric[s] && sc.sums[s]", "return true"}},
		caught: []suite{bashItself}},
	{breaks: "a number that comes later counts for what comes before",
		edits:  []edit{{"internal/shell/expansion.go", "return r.facts.numeric[s] && sc.sums[s]", "return r.facts.numeric[s]"}},
		caught: []suite{{"./internal/shell", "ANumberCounts"}}},
	{breaks: "a command word that isn't literal passes",
		edits:  []edit{{"internal/shell/start.go", "case !words[0].lit || name == \"\":", "case name == \"\" && words[0].lit:"}},
		caught: []suite{corpora}},
	{breaks: "a word that isn't literal is never an option",
		edits:  []edit{{"internal/shell/options.go", "if t.sharp && !s.harmlessValue(t, w) {", "if false {"}},
		caught: []suite{corpora}},
	{breaks: "a path is compared by its beginning",
		edits:  []edit{{"internal/shell/place.go", "return p == dir || strings.HasPrefix(p, dir) && (dir == \"/\" || p[len(dir)] == '/')", "return strings.HasPrefix(p, dir)"}},
		caught: []suite{{"./internal/shell", "Neighbour"}}},
	{breaks: "protected names depend on the case of letters",
		edits:  []edit{{"internal/shell/place.go", "\trel = strings.ToLower(rel)\n", ""}},
		caught: []suite{corpora}},
	{breaks: "a failed cd is forgotten",
		edits:  []edit{{"internal/shell/builtin.go", "return outcome{ok: before.to(words[0].text), fail: before}", "return stays(before.to(words[0].text))"}},
		caught: []suite{{"./internal/shell", "PathsAreRead"}}},
	{breaks: "a source of any length is read",
		edits:  []edit{{"internal/shell/bounds.go", "if len(src) > maxSource {", "if false {"}},
		caught: []suite{{"./internal/shell", "BadInput"}}},
	{breaks: "control characters pass",
		edits:  []edit{{"internal/shell/bounds.go", "case unicode.Is(unicode.Cc, c):", "case false:"}},
		caught: []suite{{"./internal/shell", "BadInput"}}},
	{breaks: "a wrapper's options are skipped by a guess",
		edits:  []edit{{"internal/shell/wrapper.go", "\ts.certain(words[:max(0, len(words)-len(rest))])\n", ""}},
		caught: []suite{{"./internal/shell", "MovesTheCommand"}}},
	{breaks: "what a shell is handed may be any text",
		edits: []edit{{"internal/shell/wrapper.go", "case command && !rest[0].lit:", "case command && !rest[0].lit && rest[0].text == \"\":"},
			{"internal/shell/judge.go", "\t\ts.r.raise(Unparsable, why) // also where the command itself isn't recorded any more\n", ""}},
		caught: []suite{disguises}},
}
