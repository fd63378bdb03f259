//go:build unix

// Package file holds the tools that read and change files: read, write, edit,
// patch and list. They promise: nothing outside the workspace is opened,
// whatever links point there, even if they are swapped meanwhile; only regular
// files are opened, and nothing waits for a pipe; a change replaces the whole
// file or nothing, on disk too; what a file was before is kept; and a file is
// changed only by a thread that knows its content. They know nothing of policy,
// except that some names can't be written.
//
// A write replaces a name. A file with several hard links is not changed through
// its other names: the link is broken, and the result says so. Permission bits
// are kept; extended attributes are not.
package file

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// Codes of problems. CONFLICT and NOT_READ mean that the thread doesn't know
// what it would overwrite.
const (
	CodeOutside       = "OUTSIDE_WORKSPACE"
	CodeBadPath       = "BAD_PATH"
	CodeBadLink       = "BAD_LINK"
	CodeProtected     = "PROTECTED_NAME"
	CodePermission    = "PERMISSION"
	CodeReadOnlyFile  = "READ_ONLY_FILE"
	CodeNoSuchFile    = "NO_SUCH_FILE"
	CodeIsDirectory   = "IS_DIRECTORY"
	CodeNotDirectory  = "NOT_A_DIRECTORY"
	CodeNotRegular    = "NOT_A_REGULAR_FILE"
	CodeBinary        = "BINARY_FILE"
	CodeTooLarge      = "TOO_LARGE"
	CodeBeyondEnd     = "OFFSET_BEYOND_END"
	CodeNotRead       = "NOT_READ"
	CodeConflict      = "CONFLICT"
	CodeRedacted      = "REDACTED_TEXT"
	CodeNotFoundText  = "NOT_FOUND_TEXT"
	CodeAmbiguous     = "AMBIGUOUS"
	CodeNoChange      = "NO_CHANGE"
	CodeKeepsChanging = "KEEPS_CHANGING"
	CodeNoSpace       = "NO_SPACE"
	CodeNotNotebook   = "NOT_A_NOTEBOOK"
	CodeNoCell        = "NO_SUCH_CELL"
	CodeUnknownEffect = "UNKNOWN_EFFECT"
	CodeIO            = "IO"
)

// Absent is the digest of a file that isn't there.
const Absent = "absent"

const (
	// maxContent is the largest file that is changed, or digested when it is read.
	maxContent = 64 << 20
	// readLimit is how much of a file one read shows.
	readLimit = 48 << 10
	textMedia = "text/plain; charset=utf-8"
)

// Tools lists the tools of this package.
func Tools() []tool.Tool {
	return []tool.Tool{Read(), Write(), Edit(), Patch(), List(), NotebookEdit()}
}

// reading and writing are what the specs have in common.
func reading(name, doc string) tool.Spec {
	return tool.Spec{Name: name, Doc: doc, Effect: belay.Pure, ReadOnly: true, PathArg: "path", Access: belay.Read}
}

func writing(name, doc string) tool.Spec {
	return tool.Spec{Name: name, Doc: doc, Effect: belay.Recoverable, PathArg: "path", Access: belay.Write}
}
