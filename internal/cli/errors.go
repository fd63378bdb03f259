package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// exitOf is the exit code of an error.
func exitOf(c belay.Code) int {
	switch c {
	case belay.CodeUsage, belay.CodeBadID, belay.CodeNotFound, belay.CodeUnknownAction, belay.CodeBadScript, belay.CodeBadScenario, belay.CodeWorkspace,
		belay.CodeRefusedMode, belay.CodeNoProvider, belay.CodeNoKey, belay.CodeBadSecrets, belay.CodeExists, belay.CodeBadTranscript, belay.CodeBadTemplate, belay.CodeBadConfig, belay.CodeBadManifest, belay.CodeBadPolicy, belay.CodeBadBoundary, belay.CodePolicyNewer, belay.CodeNotGoverned, belay.CodeBadBackup, belay.CodeBadArguments, belay.CodeDeleted, belay.CodeExpired:
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

// fail prints an error that was explained and returns the exit code for it.
func (a *app) fail(e *belay.Error) int {
	exit := exitOf(e.Code)
	if a.JSON {
		a.printJSON(failure{e, exit})
	}
	fmt.Fprintf(a.Err, "error: %s\n", line(e.Error()))
	fmt.Fprintf(a.Err, "code: %s\n", e.Code)
	if e.Hint != "" {
		fmt.Fprintf(a.Err, "try: %s\n", line(e.Hint))
	}
	return exit
}

// explain makes every error one with a code and a next command; clean takes
// secrets out of what it says.
func (a *app) explained(err error, clean func(string) string) *belay.Error {
	if owned, ok := errors.AsType[*store.OwnedError](err); ok {
		return a.ownedError(owned)
	}
	e, ok := errors.AsType[*belay.Error](err)
	if !ok {
		e = belay.Errorf(belay.CodeInternal, "%s", err.Error())
	} else {
		e = &belay.Error{Code: e.Code, Message: e.Message, Where: e.Where, Hint: e.Hint, Err: e.Err}
	}
	if e.Err != nil { // the cause is part of what a person and a program read
		e.Message, e.Err = e.Message+": "+e.Err.Error(), nil
	}
	for _, s := range []*string{&e.Message, &e.Where, &e.Hint} {
		*s = clean(*s)
	}
	if errors.Is(err, store.ErrStale) {
		e.Code, e.Message = belay.CodeOwned, "another process has taken the session over; this one has stopped everything"
	}
	if e.Hint == "" {
		e.Hint = nextCommand(e.Code)
	}
	return e
}

func (a *app) ownedError(o *store.OwnedError) *belay.Error {
	return belay.Errorf(belay.CodeOwned, "process %d on %s drives it, since %s", o.Owner.PID, o.Owner.Host, ago(a.Now().Sub(o.Owner.Since))).
		At(string(o.Session)).WithHint("belay sessions interrupt %s, or wait until it has ended", o.Session)
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
	}
	return "belay doctor"
}

// ago is a duration for people.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// printJSON writes one line to standard output.
func (a *app) printJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("cli: " + err.Error()) // everything printed is plain data
	}
	a.Out.Write(append(safeJSON(b), '\n')) //nolint:errcheck // nobody is left to tell
}
