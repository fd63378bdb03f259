package belay

import (
	"errors"
	"fmt"
)

// Code is the stable name of an error. Callers may depend on it; on the text
// they may not.
type Code string

const (
	CodeInternal        Code = "internal"         // a fault of the program
	CodeUsage           Code = "usage"            // the command line or the request is wrong
	CodeBadID           Code = "bad_id"           // an id has another form
	CodeIDConflict      Code = "id_conflict"      // the id was used with another body
	CodeNotFound        Code = "not_found"        // there is no such thing
	CodeBadState        Code = "bad_state"        // not in the state that it is in
	CodeAgentStopped    Code = "agent_stopped"    // the agent takes no new work
	CodeAgentClosed     Code = "agent_closed"     // the agent was told to end
	CodeAgentWaits      Code = "agent_waits"      // the agent waits for a place and hasn't begun
	CodeAgentTeam       Code = "agent_team"       // a team has no conversation of its own
	CodeAgentLimit      Code = "agent_limit"      // it would be one agent too many, or too deep
	CodeUnknownAgent    Code = "unknown_agent"    // there is no agent of that name
	CodeBadAgent        Code = "bad_agent"        // the agent's file can't be used
	CodeNotCovered      Code = "not_covered"      // an agent would have more than who starts it
	CodeNoWorktree      Code = "no_worktree"      // no worktree can be made here
	CodeCycle           Code = "cycle"            // tasks would wait for one another
	CodeAlreadyAnswered Code = "already_answered" // the question has an answer
	CodeUnknownAction   Code = "unknown_action"   // there is no such question
	CodeBadCommand      Code = "bad_command"      // the command is not one, or not for this
	CodeBadArguments    Code = "bad_arguments"    // a call can't run with what a person gave it
	CodeBadInput        Code = "bad_input"        // what an agent is started with doesn't fit its schema
	CodeBusy            Code = "busy"             // something else runs, try again
	CodeOwned           Code = "session_owned"    // another process drives the session
	CodeRefusedMode     Code = "mode_refused"     // the mode may not be chosen here
	CodeNoProvider      Code = "no_provider"      // no provider of that name
	CodeNoKey           Code = "no_key"           // a provider's key isn't where it should be
	CodeNoPrice         Code = "no_price"         // money is limited, and no model has a known price
	CodeBadSecrets      Code = "bad_secrets"      // the encrypted file of secrets can't be used
	CodeBadScript       Code = "bad_script"       // the scripted model's file is wrong
	CodeBadScenario     Code = "bad_scenario"     // the scenario's file is wrong
	CodeWorkspace       Code = "bad_workspace"    // the workspace can't be worked in
	CodeStoreNewer      Code = "store_newer"      // a newer version wrote the store
	CodeStoreDamaged    Code = "store_damaged"    // the store isn't what was written
	CodeStoreFull       Code = "store_full"       // the disk of the store is full
	CodeStoreReadOnly   Code = "store_read_only"  // the store can't be written
	CodeStoreFailed     Code = "store_failed"     // a sync failed: closed for writing until reopened and verified
	CodeStoreBusy       Code = "store_busy"       // another process holds the store
	CodeStoreNetwork    Code = "store_on_network" // the store is on a network file system
	CodeRequires        Code = "requires_newer"   // a newer version is needed
	CodeTooLarge        Code = "too_large"        // over a bound
	CodeAddress         Code = "address_refused"  // the address may not be connected to
	CodeBadConfig       Code = "bad_config"       // a setting is wrong
	CodeBadManifest     Code = "bad_manifest"     // a file of tools or providers is wrong
	CodeBadPolicy       Code = "bad_policy"       // a file of rules is wrong
	CodePolicyNewer     Code = "policy_newer"     // the rules are of a newer version
	CodeNotGoverned     Code = "not_governed"     // trust means nothing to the file
	CodeConflict        Code = "conflict"         // it changed since it was read
	CodeBadTemplate     Code = "bad_template"     // the template is wrong or lacks a value
	CodeDiskFull        Code = "disk_full"        // of a file outside the store
	CodeNotWritten      Code = "not_written"      // a file outside the store
	CodeExists          Code = "file_exists"      // and isn't replaced unasked
	CodeBadBundle       Code = "bad_bundle"       // a session's file is damaged, cut off or made up
	CodeBadBackup       Code = "bad_backup"       // the file is damaged, cut off or none
	CodeBadTranscript   Code = "bad_transcript"   // no transcript that can be read
	CodeUntrusted       Code = "untrusted"        // a person must say that they trust it
	CodeDeleted         Code = "session_deleted"  // and not restored
	CodeNoLogin         Code = "no_login"         // a server has no login that can be used
	CodeLoginRefused    Code = "login_refused"    // who lets people in doesn't want the client, or the person
	CodeLoginState      Code = "login_state"      // the browser came back from another login
	CodeLoginIssuer     Code = "login_issuer"     // the browser came back from somebody else
	CodeExpired         Code = "output_expired"   // it was kept, and has expired

	// What only a server says.
	CodeUnauthorized Code = "unauthorized"   // no token, or one that isn't good
	CodeForbidden    Code = "forbidden"      // the token's role may not do this
	CodeOrigin       Code = "origin_refused" // a page of another site asks
	CodeHost         Code = "host_refused"   // the request names a host that isn't this server
	CodeMethod       Code = "method_refused" // the route takes another method
	CodeMedia        Code = "media_refused"  // the body is of a type that isn't taken
	CodeTooMany      Code = "too_many"       // more than the server takes from one caller
	CodeUnavailable  Code = "unavailable"    // this build can't do it, or its object no longer exists
	CodeDraining     Code = "draining"       // the server is about to end
	CodeBadCursor    Code = "bad_cursor"     // of another store or stream, from the future, or no cursor
	CodeUnreachable  Code = "unreachable"    // the server a client speaks to doesn't answer
	CodeBadBoundary  Code = "bad_boundary"   // what is written about a boundary means nothing
	CodeNotConfined  Code = "not_confined"   // the boundary that is demanded can't be had
	CodeGitUnsafe    Code = "git_unsafe"     // a repository could make git run something, and that can't be ruled out
)

// Error is an error as a user meets it: what happened, where, and what to do
// next. It never contains a secret.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Where   string `json:"where,omitempty"` // a path, a line, an id
	Hint    string `json:"hint,omitempty"`  // the next command, or what to change
	Err     error  `json:"-"`
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Message
	if e.Where != "" {
		s = e.Where + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the error behind it.
func (e *Error) Unwrap() error { return e.Err }

// Is matches another Error of the same code, so errors.Is(err, &Error{Code: c}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// WithHint sets what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At sets where it happened.
func (e *Error) At(where string) *Error { e.Where = where; return e }

// Wrap sets the cause.
func (e *Error) Wrap(err error) *Error { e.Err = err; return e }

// Errorf makes an Error with a code.
func Errorf(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

// CodeOf is the code of the outermost Error in err's chain; CodeInternal when there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
