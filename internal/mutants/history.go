package main

var (
	forks     = suite{"./internal/engine", "TestAFork"}
	backs     = suite{"./internal/engine", "TestBackIs"}
	rollbacks = suite{"./internal/engine", "TestCrashAtEveryPointOfARollback"}
	restores  = suite{"./internal/tool/file", "TestRestore"}
	shadows   = suite{"./internal/shadow", "."}
	stories   = suite{"./script", "TestScripts/(fork|rollback|labels)$"}
)

// Forks, rollbacks and undo.
var historyMutants = []mutant{
	{breaks: "a fork in the middle of a turn splits a call from its answer",
		edits:  []edit{{"internal/engine/history.go", "return len(v.msgs) - 1\n", "return len(v.msgs)\n"}},
		caught: []suite{forks}},
	{breaks: "a fork copies what was copied before",
		edits:  []edit{{"internal/engine/past.go", "b.Base = slices.Concat(p.begin.Base, b.Base)", "b.Base = slices.Concat(b.Base)"}},
		caught: []suite{forks}},
	{breaks: "what is said after a rollback's target stays in the conversation",
		edits:  []edit{{"internal/engine/history.go", "\t\tv.back(p.Target)\n", "\t\t_ = p.Target\n"}},
		caught: []suite{backs}},
	{breaks: "files that were seen after a rollback's target need not be read again",
		edits:  []edit{{"internal/core/thread/rollback.go", "\ts.Files.back(p.Target)\n", ""}},
		caught: scenarios},
	{breaks: "a turn begins while files are being restored",
		edits:  []edit{{"internal/core/thread/next.go", "case s.Restore != nil:", "case s.Restore != nil && len(s.Queue) == 0:"}},
		caught: scenarios},
	{breaks: "files are restored under a running turn",
		edits:  []edit{{"internal/core/thread/rollback.go", "case s.Turn != nil || s.Keep != nil || s.Undo != \"\" || len(s.Queue) > 0:", "case false:"}},
		caught: scenarios},
	{breaks: "a plan that was made before the last turn is carried out",
		edits:  []edit{{"internal/core/thread/rollback.go", "case c.After != s.Seq:", "case false:"}},
		caught: scenarios},
	{breaks: "a restoration overwrites what somebody else wrote",
		edits:  []edit{{"internal/tool/file/restore.go", "case now.Digest != r.Have:", "case false:"}},
		caught: []suite{restores}},
	{breaks: "a rollback doesn't ask for --force where somebody else changed a file",
		edits:  []edit{{"internal/engine/rollback.go", "case now.Digest != digestOf(have):", "case false:"}},
		caught: []suite{stories}},
	{breaks: "a file that a crash left restored is not recorded",
		edits:  []edit{{"internal/tool/file/restore.go", "case now.Digest == r.Want:\n\t\t\treturn nil\n", "case now.Digest == r.Want:\n\t\t\treturn errors.New(\"it is so already\")\n"}},
		caught: []suite{rollbacks}},
	{breaks: "a file is recorded as restored by every attempt",
		edits:  []edit{{"internal/engine/restore.go", "if !recorded[f.Path] {", "if f.Path != \"\" || recorded[f.Path] {"}},
		caught: []suite{rollbacks}},
	{breaks: "a file that comes back has another mode",
		edits:  []edit{{"internal/tool/file/restore.go", "l.perm, l.exact = perm, true", "_ = perm"}},
		caught: []suite{restores}},
	{breaks: "a snapshot obeys the repository's filters",
		edits:  []edit{{"internal/shadow/shadow.go", "* -text !eol -ident -filter -working-tree-encoding -diff -merge", "# nothing"}},
		caught: []suite{shadows}},
	{breaks: "a snapshot runs the repository's hooks",
		edits:  []edit{{"internal/gitsafe/git.go", "{\"core.hooksPath\", os.DevNull}, ", ""}},
		caught: []suite{shadows}},
	{breaks: "a turn begins before the workspace was kept",
		edits:  []edit{{"internal/core/thread/next.go", "limits, snapshot, choose", "limits, choose"}},
		caught: scenarios},
	{breaks: "files are taken back before the workspace was kept",
		edits:  []edit{{"internal/core/thread/rollback.go", "case s.Turn != nil || s.Keep != nil ||", "case s.Turn != nil ||"}},
		caught: scenarios},
	{breaks: "work for an archived session leaves it out of the lists",
		edits:  []edit{{"internal/core/session/session.go", "\t\tgiven.Archived = new(bool)\n", ""}},
		caught: []suite{stories}},
}
