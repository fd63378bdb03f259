package belay

// Use is what a session may do in its workspace besides reading.
type Use string

const (
	UseNothing Use = ""       // its rules allow no change
	UseWriter  Use = "writer" // it is the one session that may change things
	UseShared  Use = "shared" // others may too: what each has read keeps them from overwriting each other
	UseReader  Use = "reader" // another session is the writer: changes are denied
)

// WorkspaceUse is how a session uses its workspace, settled when a process
// begins to drive it.
type WorkspaceUse struct {
	Use    Use       `json:"use"`
	Writer SessionID `json:"writer,omitempty"` // for a reader: the session that writes
	Path   string    `json:"path,omitempty"`   // the writer's path
}

// Hold is a call that changes things in a workspace that several threads of a
// session work on.
type Hold struct {
	Call  CallID `json:"call"`
	Whole bool   `json:"whole,omitempty"` // no other session may change anything meanwhile
}

// Worktree is a git worktree made for a session.
type Worktree struct {
	Repository string `json:"repository"`        // the root of the repository it belongs to
	Path       string `json:"path"`              // its own root
	Branch     string `json:"branch"`            // made with it
	Base       string `json:"base"`              // the commit that both began at
	Removed    bool   `json:"removed,omitempty"` // removed, and its branch too if it has no commits
}

// Diffstat is how much a change is.
type Diffstat struct {
	Files      int `json:"files"`
	Insertions int `json:"insertions"` // lines
	Deletions  int `json:"deletions"`
}
