package term

import (
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/store"
)

// ExitOf is the exit code of an error.
func ExitOf(c belay.Code) int {
	switch c {
	case belay.CodeUsage, belay.CodeBadID, belay.CodeNotFound, belay.CodeUnknownAction, belay.CodeUnknownAgent, belay.CodeBadScript, belay.CodeBadScenario, belay.CodeWorkspace,
		belay.CodeRefusedMode, belay.CodeNoProvider, belay.CodeNoKey, belay.CodeNoPrice, belay.CodeBadSecrets, belay.CodeExists, belay.CodeBadTranscript, belay.CodeBadTemplate, belay.CodeBadConfig, belay.CodeBadManifest, belay.CodeBadPolicy, belay.CodeBadBoundary, belay.CodePolicyNewer, belay.CodeNotGoverned, belay.CodeBadBackup, belay.CodeBadArguments, belay.CodeDeleted, belay.CodeExpired:
		return belay.ExitUsage
	case belay.CodeStoreNewer, belay.CodeStoreDamaged, belay.CodeStoreFull, belay.CodeStoreReadOnly, belay.CodeStoreFailed,
		belay.CodeStoreBusy, belay.CodeStoreNetwork, belay.CodeRequires, belay.CodeOwned:
		return belay.ExitStore
	}
	return belay.ExitFailed
}

// failure is an error as JSON.
type failure struct {
	Error *belay.Error `json:"error"`
	Exit  int          `json:"exit"`
}

// Fail prints an error that was explained and returns the exit code for it.
func (e *Env) Fail(err *belay.Error) int {
	exit := ExitOf(err.Code)
	if e.JSON {
		e.PrintJSON(failure{err, exit})
	}
	fmt.Fprintf(e.Err, "error: %s\n", Line(err.Error()))
	fmt.Fprintf(e.Err, "code: %s\n", err.Code)
	if err.Hint != "" {
		fmt.Fprintf(e.Err, "try: %s\n", Line(err.Hint))
	}
	return exit
}

// Explain makes every error one with a code and a next command; clean takes
// secrets out of what it says.
func (e *Env) Explain(err error, clean func(string) string) *belay.Error {
	if owned, ok := errors.AsType[*store.OwnedError](err); ok {
		return e.ownedError(owned)
	}
	x, ok := errors.AsType[*belay.Error](err)
	if !ok {
		x = belay.Errorf(belay.CodeInternal, "%s", err.Error())
	} else {
		x = &belay.Error{Code: x.Code, Message: x.Message, Where: x.Where, Hint: x.Hint, Err: x.Err}
	}
	if x.Err != nil { // the cause is part of what a person and a program read
		x.Message, x.Err = x.Message+": "+x.Err.Error(), nil
	}
	for _, s := range []*string{&x.Message, &x.Where, &x.Hint} {
		*s = clean(*s)
	}
	if errors.Is(err, store.ErrStale) {
		x.Code, x.Message = belay.CodeOwned, "another process has taken the session over; this one has stopped everything"
	}
	if x.Hint == "" {
		x.Hint = nextCommand(x.Code)
	}
	x.Hint = document.Get().ReplaceAllString(x.Hint, documents+"$0")
	return x
}

// documents is where the documents that hints name can be read without the source.
const documents = "https://github.com/belay-run/belay/blob/main/"

// document is the name of one.
var document = match.Lazy(`\bdocs/[a-z]+\.md\b`)

func (e *Env) ownedError(o *store.OwnedError) *belay.Error {
	return belay.Errorf(belay.CodeOwned, "process %d on %s drives it, since %s", o.Owner.PID, o.Owner.Host, Ago(e.Now().Sub(o.Owner.Since))).
		At(string(o.Session)).WithHint("belay run --session %s --queue steer TEXT (or enqueue) gives it more to do; belay sessions interrupt %s ends its turn", o.Session, o.Session)
}

func nextCommand(c belay.Code) string {
	switch c {
	case belay.CodeStoreDamaged, belay.CodeStoreFailed:
		return "belay verify"
	case belay.CodeStoreFull:
		return "free some space, then belay sessions resume --last"
	case belay.CodeStoreBusy:
		return "wait a moment and repeat the command"
	case belay.CodeStoreReadOnly, belay.CodeStoreNetwork:
		return "name another place: --store DIR"
	case belay.CodeStoreNewer, belay.CodeRequires:
		return "update belay; nothing was changed"
	case belay.CodeNotFound:
		return "belay sessions list --all"
	case belay.CodeAlreadyAnswered, belay.CodeBadState:
		return "belay sessions list"
	case belay.CodeUsage:
		return "belay --help"
	case belay.CodeBadCommand:
		return "the command's --help says what it takes"
	}
	return "belay doctor"
}
