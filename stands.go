package belay

import "slices"

// ApprovalContext is the context of an approval besides the call's arguments and its
// boundary, as it was when a person was asked: the approval holds only in that
// context. A part that couldn't be determined is empty, which is a value like
// others.
type ApprovalContext struct {
	Folder   string        `json:"folder,omitempty"`   // working directory, absolute and without links
	FolderID string        `json:"folderId,omitempty"` // identity of that folder
	Env      Digest        `json:"env,omitempty"`      // keyed digest of the programs' environment
	Programs []ProgramSeen `json:"programs,omitempty"` // programs its text names, at most 16
	More     Digest        `json:"more,omitempty"`     // of the others
}

// ProgramSeen is the file that a program's name led to.
type ProgramSeen struct {
	Name   string `json:"name"`             // as the call writes it
	Path   string `json:"path,omitempty"`   // absolute, without links; none: there was no such program
	Digest Digest `json:"digest,omitempty"` // of its content, or of a large file's metadata
}

// Same reports whether a call would run as it stood.
func (s *ApprovalContext) Same(o *ApprovalContext) bool {
	return s.Folder == o.Folder && s.FolderID == o.FolderID && s.Env == o.Env && s.More == o.More && slices.Equal(s.Programs, o.Programs)
}
