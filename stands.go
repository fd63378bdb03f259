package belay

import "slices"

// Stands is what a call stands on besides its arguments and its boundary, as it
// was when a person was asked: the answer is for that. A part that nobody could
// tell is empty, which is a state like others.
type Stands struct {
	Folder   string        `json:"folder,omitempty"`   // where it works, absolute and without links
	FolderID string        `json:"folderId,omitempty"` // which folder that is, whatever its name
	Env      Digest        `json:"env,omitempty"`      // of the names and values that its programs get, under a key; the values stand nowhere
	Programs []ProgramSeen `json:"programs,omitempty"` // that it starts, as far as its text names them, at most 16
	More     Digest        `json:"more,omitempty"`     // of the others
}

// ProgramSeen is a program as its name led to a file.
type ProgramSeen struct {
	Name   string `json:"name"`             // as the call writes it
	Path   string `json:"path,omitempty"`   // absolute, without links; none: there was no such program
	Digest Digest `json:"digest,omitempty"` // of its content, or of what the file system says of a large one
}

// Same reports whether a call would run as it stood.
func (s *Stands) Same(o *Stands) bool {
	return s.Folder == o.Folder && s.FolderID == o.FolderID && s.Env == o.Env && s.More == o.More && slices.Equal(s.Programs, o.Programs)
}
