package term

import (
	"fmt"
	"slices"

	"github.com/belay-run/belay"
)

// Question is a question that waits, as who answers it must see it: whole, with
// the version that an answer is for.
type Question struct {
	ID      belay.ActionID
	Kind    string   // permission, question, continue, budget
	Text    string   // as it was asked
	Version string   // of the question
	Tool    string   // of the call; empty of a question about no call
	Args    []byte   // of the call, all of them
	Call    string   // the call, clean, on one line; empty of a question about no call
	Gives   []string // what an approval gives the call, and why it is asked for once more
	Wider   bool     // the call ran, and asks for more than its boundary allows
}

// asks is what it asks, on one line: the call, whole, or the text of a question.
func (q *Question) asks() string {
	if q.Call != "" {
		return q.Call
	}
	return Line(q.Text)
}

// Commands are the commands that answer it as it was shown.
func (q *Question) Commands() []string {
	all := AnswerCommands(q.ID, q.Kind)
	if q.Kind == "permission" {
		all[0] += " --version " + q.Version
	}
	return all
}

// AnswerCommands are the commands that answer a question, whatever it is now.
func AnswerCommands(id belay.ActionID, kind string) []string {
	switch kind {
	case "question":
		return []string{"belay answer " + string(id) + " TEXT", "belay deny " + string(id)}
	case "budget":
		return []string{"belay approve " + string(id), "belay approve " + string(id) + " --budget +AMOUNT", "belay deny " + string(id)}
	}
	return []string{"belay approve " + string(id), "belay deny " + string(id)}
}

// ways lists what an answer gives, and the commands for it.
func (q *Question) ways(e *Env) []string {
	all := slices.Clone(q.Gives)
	for _, c := range q.Commands() {
		all = append(all, c+e.StoreFlag)
	}
	return all
}

// Show prints a call that a person allows, before they do: nothing of it is left out.
func (q *Question) Show(e *Env) {
	if e.JSON || q.Call == "" {
		return
	}
	fmt.Fprintf(e.Err, "it wants to run: %s\n", q.Call)
	for _, s := range q.Gives {
		fmt.Fprintf(e.Err, "  %s\n", s)
	}
	fmt.Fprintf(e.Err, "  version %s\n", q.Version)
}
