package belay

// Beginning is what a thread has before its own first fact: a conversation
// copied from elsewhere, and where that was. The copy is whole: nothing of the
// thread it came from is needed any more.
type Beginning struct {
	// Base is the copied conversation: content of JSON lines, each a Said.
	Base         []Ref      `json:"base,omitempty"`
	Images       []Ref      `json:"images,omitempty"` // pictures and documents in it
	ForkedFrom   *Fork      `json:"forkedFrom,omitempty"`
	ImportedFrom *Import    `json:"importedFrom,omitempty"`
	Files        []FileSeen `json:"files,omitempty"`  // file versions the thread has seen
	Taint        []string   `json:"taint,omitempty"`  // untrusted origins in the conversation, as kind:origin
	Lost         []string   `json:"lost,omitempty"`   // calls with unknown outcome: tool and hash of the arguments
	Tokens       int64      `json:"tokens,omitempty"` // of the conversation, as in Content; 0: not counted

	// Window is what the model is shown in place of Base, whose conversation was
	// shortened; empty: Base itself.
	Window []Ref `json:"window,omitempty"`
	Pinned *Ref  `json:"pinned,omitempty"` // what stays of it when the conversation is shortened again
}

// Bounds of a beginning, so that it fits into a fact.
const (
	MaxBase   = 16 // pieces of the conversation
	MaxImages = 16 // pictures and documents
)

// Bounds of an image that models are shown, as vendors set them.
const (
	MaxImageBytes = 5 << 20
	MaxImageSide  = 8000 // pixels of the longer side
)

// MediaSaid is the media type of a piece of a base.
const MediaSaid = "application/x-ndjson"

// Said is a message of a copied conversation, and the turn it belonged to.
type Said struct {
	Turn TurnID `json:"turn,omitempty"`
	Message
}

// Fork names the turn of a thread that another thread continues from.
type Fork struct {
	Session  SessionID `json:"session"`
	Thread   ThreadID  `json:"thread"`
	Turn     TurnID    `json:"turn,omitempty"`     // the last turn of the copy; empty: nothing was copied
	Sequence int64     `json:"sequence,omitempty"` // of the last fact that counts; 0 when the turn was a copy there already
}

// Import is the source of an imported history.
type Import struct {
	Format  string    `json:"format"`            // bundle, transcript, claude-code, openclaw-v1, …
	Name    string    `json:"name,omitempty"`    // of the file
	Digest  Digest    `json:"digest,omitempty"`  // of what was read
	Session SessionID `json:"session,omitempty"` // its id there
	Thread  ThreadID  `json:"thread,omitempty"`
	Turns   int       `json:"turns,omitempty"`
	Left    []string  `json:"left,omitempty"` // what could not be carried over
}

// FileSeen is a file as a thread last read or wrote it.
type FileSeen struct {
	Path   string `json:"path"`   // slash-separated, relative to the workspace
	Digest string `json:"digest"` // sha256:…, or absent
}
