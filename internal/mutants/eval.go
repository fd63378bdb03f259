package main

var evalMutants = []mutant{
	{breaks: "a scenario passes whatever it expects",
		edits:  []edit{{"internal/eval/play.go", "res.Failures = append(res.Failures, e.Check(ctx, seen)...)", "e.Check(ctx, seen)"}},
		caught: []suite{{"./internal/eval", "AllItExpects"}}},
	{breaks: "a scenario that expects nothing is taken",
		edits:  []edit{{"internal/eval/read.go", "case len(f.Expect) == 0:", "case false:"}},
		caught: []suite{{"./internal/eval", "MissingOrWrong"}}},
	{breaks: "what was to happen meanwhile may stay away",
		edits:  []edit{{"internal/eval/meanwhile.go", "\t\tif !m.done {\n", "\t\tif false {\n"}},
		caught: []suite{{"./internal/eval", "MustHappen"}}},
	{breaks: "a process that died goes on writing",
		edits:  []edit{{"internal/eval/meanwhile.go", "\tif s.dead {\n\t\treturn errDied\n\t}\n\treturn nil\n}\n\nfunc (s *stage) happen", "\treturn nil\n}\n\nfunc (s *stage) happen"}},
		caught: []suite{{"./internal/eval", "Suite/crashes"}}},
	{breaks: "an operator between quotes is one",
		edits:  []edit{{"internal/eval/gym/bash.go", "if single || double {", "if single {"}},
		caught: []suite{{"./internal/eval/gym", "Operators"}}},
	{breaks: "the operators of a command are looked at before its dangerous patterns",
		edits: []edit{{"internal/eval/gym/bash.go", `	if pattern := dangerous(command); pattern != "" {`, `	if op := operator(command); op != "" {
		return tool.Result{}, tool.Failf(tool.Denied, codeDenied, "Command contains unsafe shell operator: %s", op)
	}
	if pattern := dangerous(command); pattern != "" {`}},
		caught: []suite{{"./internal/eval/gym", "Operators"}}},
}
