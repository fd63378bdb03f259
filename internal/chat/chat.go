package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// Options are what a conversation begins with.
type Options struct {
	Runtime   Runtime
	Terminal  Terminal
	By        ByLine // how it is held; Drawn on a terminal that can be drawn on
	Desk      Desk
	Bell      bool                     // it rings when it waits or ends and its window has no focus
	Notifies  bool                     // it shows a notification then
	Look      block.Options            // how blocks are rendered; its Width and Now are set here
	Workspace string                   // of a new session
	Session   belay.SessionID          // that is continued; empty: a new one
	Pick      bool                     // the person chooses the session first
	Begin     belay.Settings           // of a new session, as they are shown
	Settings  map[string]any           // of a new session, as submit_turn takes them
	Changes   map[string]any           // of the settings of sessions that are continued
	First     string                   // a message that is sent at once
	Notes     []string                 // lines that are printed first
	Explain   func(error) *belay.Error // an error as it may be shown
	Now       func() time.Time
}

// Desk is what the person's machine has besides the terminal.
type Desk interface {
	Folder
	// EditText opens a text in the person's editor, in a file of that name.
	EditText(ctx context.Context, name string, text []byte) ([]byte, error)
	// Edit opens a call's arguments in the person's editor.
	Edit(ctx context.Context, args []byte) (json.RawMessage, error)
	// Page shows a text in the person's pager, which may end before the text does.
	Page(ctx context.Context, text io.Reader) error
	// Belay runs another command of this program on the terminal.
	Belay(ctx context.Context, args ...string) error
	// BelayText returns what another command of this program prints.
	BelayText(ctx context.Context, args ...string) ([]byte, error)
	// ClipboardImage is the image that the clipboard has.
	ClipboardImage(ctx context.Context) (*File, error)
}

// Folder is where a conversation works.
type Folder interface {
	// Files are the files of a folder as git sees them.
	Files(ctx context.Context, dir string) ([]string, error)
	// Named are the files of a folder that a message names with @, and the words after @
	// that were meant as files and are none of the folder's.
	Named(dir, text string) (files []File, missed []string, err error)
	// Image is the image at a path as terminals paste it; nil: there is none.
	Image(path string) (*File, error)
	// Save fills a new file; one that is there stays.
	Save(name string, write func(io.Writer) error) error
	// Branch is what is checked out in a folder, with * if files were changed.
	Branch(ctx context.Context, dir string) string
}

// File is a file that is sent along with a message.
type File struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}

// Chat is a conversation on a terminal. Its goroutine is the only one that touches
// what it has; work that takes time is done beside it by jobs.
type Chat struct {
	Options
	jobs    *jobs
	items   chan arrival
	unlink  context.CancelFunc // ends following; nil: nothing is followed
	conv    conversation
	comp    screen.Composer
	files   files
	pasted  int       // images so far
	images  []image   // that were pasted, the newest of them
	outbox  []message // that wait until the one before was taken
	sending bool
	entry   *entry    // what the composed text is for; nil: it is a message
	ask     *question // on the screen; nil: none is
	pick    *picker   // what is chosen from; nil: nothing is
	keys    twice
	changes map[string]any // of settings, that go with the next message
	began   time.Time      // the conversation
	note    string         // drawn until the next key
	branch  string
	until   belay.EventID // the fact up to which the session is read; empty: it was
	by      lines         // of what is held line by line
	away    bool          // the terminal's window has no focus
	leaving bool
}

// arrival is what a followed session brings.
type arrival struct {
	Item
	session belay.SessionID
	err     error
}

// entry is a use of the composer other than for a message.
type entry struct {
	label string
	kept  screen.Draft           // the message that was composed before
	done  func(text string) bool // takes what was entered; false: it is to be changed
}

// Left is what a conversation is left with.
type Left struct {
	Session belay.SessionID // empty: none was begun
	Outcome belay.Outcome   // of its last turn; empty: none has ended
	Waits   bool            // a question waits
}

// Run holds a conversation until the person leaves. What runs then is parked when the
// caller closes the runtime.
func Run(ctx context.Context, o Options) (Left, error) {
	c := &Chat{Options: o, began: o.Now(), jobs: newJobs(ctx, o.Terminal.Guard), items: make(chan arrival, takenAtOnce)}
	defer c.jobs.close()
	c.print(o.Notes...)
	c.fresh()
	switch {
	case o.Session != "":
		c.resume(o.Session)
	case o.Pick:
		picking{c}.pickSession()
	}
	if o.First != "" {
		c.send(o.First, "")
	}
	typing{c}.remember()
	c.look()
	err := c.loop()
	c.finished()
	return Left{c.conv.session, c.conv.outcome, c.ask != nil}, err
}

// fresh puts an empty conversation on the screen: the next message begins a session.
func (c *Chat) fresh() {
	if c.unlink != nil {
		c.unlink()
		c.unlink = nil
	}
	c.changes = maps.Clone(c.Settings)
	c.by.sent, c.until = "", ""
	c.conv = conversation{settings: c.Begin, workspace: c.Workspace, began: c.Now()}
	c.ask = nil
}

// spin is the time between two frames of what moves while a turn runs.
const spin = 250 * time.Millisecond

// loop takes what happens, until the person leaves.
func (c *Chat) loop() error {
	tick := time.NewTicker(spin)
	defer tick.Stop()
	for !c.leaving {
		c.show()
		if c.By == Piped {
			if (byLine{c}).takeLines(); c.leaving {
				break
			}
		}
		var moves <-chan time.Time
		if c.conv.turn != "" {
			moves = tick.C
		}
		select {
		case e, ok := <-c.Terminal.Events():
			if !ok {
				return nil
			}
			c.event(e)
		case a := <-c.items:
			if err := c.take(a); err != nil {
				return err
			}
		case then := <-c.jobs.done:
			then()
		case <-moves:
		case <-c.jobs.ctx.Done():
			return context.Cause(c.jobs.ctx)
		}
	}
	return nil
}

// How much of what a session brings is taken before it is shown, and how many blocks that
// are finished with it: what is finished is held until then.
const (
	takenAtOnce    = 16
	finishedAtOnce = 64
)

// take takes what a session brings, and what else has come by now.
func (c *Chat) take(a arrival) error {
	for range takenAtOnce {
		if err := c.arrived(a); err != nil || c.conv.fold.Finished() >= finishedAtOnce {
			return err
		}
		select {
		case a = <-c.items:
		default:
			return nil
		}
	}
	return c.arrived(a)
}

// follow makes a session the one on the screen, and continues its turn if one was
// parked.
func (c *Chat) follow(id belay.SessionID) {
	c.fresh()
	c.changes = nil
	c.conv.session, c.conv.fold.Load = id, c.content(id)
	ctx, unlink := context.WithCancel(c.jobs.ctx)
	c.unlink = unlink
	c.jobs.keep(func() {
		for item, err := range Followed(ctx, c.Runtime, id, "") {
			select {
			case c.items <- arrival{item, id, err}:
			case <-ctx.Done():
				return
			}
		}
	})
}

// arrived takes one thing that happened in a session.
func (c *Chat) arrived(a arrival) error {
	if a.session != c.conv.session {
		return nil
	}
	if a.Broken == nil {
		c.conv.stale = time.Time{}
	}
	switch {
	case errors.Is(a.err, context.Canceled):
	case a.err != nil:
		return a.err
	case a.Fact != nil:
		c.conv.apply(a.Cursor, *a.Fact)
		c.happened(*a.Fact)
		if a.Fact.ID() == c.until {
			c.until = ""
			asking{c}.find()
		}
	case a.Flow != nil:
		c.conv.fold.Flow(*a.Flow)
	case a.Broken != nil:
		c.broke(a.Broken)
	case a.Resync != nil:
		c.print("the store was put back to an earlier state; this is the session as it is there")
		c.resume(a.session)
	case a.Gone:
		c.print("the session was deleted")
		c.fresh()
	}
	return nil
}

// happened does what a fact calls for besides being shown.
func (c *Chat) happened(ev event.Envelope) {
	switch ev.Data.(type) {
	case event.ActionRequired:
		asking{c}.find()
		c.tell(ev.Time, "waits for you")
	case event.ActionResolved:
		asking{c}.find()
	case event.TurnCompleted, event.TurnFailed:
		c.tell(ev.Time, "has ended")
		c.note = ""
		c.look()
	}
}

// broke says why nothing comes from a session: the server is away, or another process
// drives it.
func (c *Chat) broke(err error) {
	if c.Runtime.Server() != "" {
		if c.conv.stale.IsZero() {
			c.conv.stale = c.Now()
		}
		return
	}
	e := c.Explain(err)
	if e.Code == belay.CodeOwned {
		c.print(block.Line(e.Message + "; it is followed here"))
		return
	}
	c.fail(err)
}

// maxContent is how much of a content is read to be shown.
const maxContent = 8 << 20

// content reads contents that facts of a session name.
func (c *Chat) content(session belay.SessionID) func(belay.Ref) ([]byte, error) {
	return func(ref belay.Ref) ([]byte, error) {
		if ref.Size > maxContent {
			return nil, belay.Errorf(belay.CodeTooLarge, "it has %d bytes", ref.Size)
		}
		ctx, cancel := context.WithTimeout(c.jobs.ctx, 5*time.Second)
		defer cancel()
		var b bytes.Buffer
		err := Content(ctx, c.Runtime, session, ref.Digest, &b)
		return b.Bytes(), err
	}
}

// look finds out what the status line says of the folder.
func (c *Chat) look() {
	if c.Runtime.Server() != "" {
		return
	}
	id, dir := c.conv.session, c.conv.workspace
	c.jobs.start(func(ctx context.Context) func() {
		branch := c.Desk.Branch(ctx, dir)
		return func() {
			if c.conv.session == id {
				c.branch = branch
			}
		}
	})
}
