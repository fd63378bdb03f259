package chat

import "time"

// action is what a key does.
type action string

const (
	toComposer    action = ""          // the composer takes the key
	nothing       action = "nothing"   // the key has no meaning here
	submit        action = "submit"    // sends the message; while a turn runs it steers it
	enqueue       action = "enqueue"   // sends the message for after the running turn
	newLine       action = "newline"   // begins another line of the message
	takeBack      action = "take back" // takes the last message that waits back into the composer
	older         action = "older"     // the message before, of this workspace
	newer         action = "newer"     // the message after it
	interrupt     action = "interrupt" // ends the running turn
	rewind        action = "rewind"    // goes back to an earlier turn
	clear         action = "clear"     // empties the composer
	warn          action = "warn"      // says that the key leaves when it is pressed again
	leave         action = "leave"     // parks the turn and leaves
	toQuestion    action = "question"  // the next key answers the question
	complete      action = "complete"  // completes the word
	nextMode      action = "next mode" // default, accept edits, plan
	inEditor      action = "editor"    // edits the message in the person's editor
	fromClipboard action = "clipboard" // sends the image along that the clipboard has
	search        action = "search"    // searches the messages of this workspace
	lastOutput    action = "output"    // shows the last output in the pager
	suspend       action = "suspend"   // stops the process, as a shell's job
	redraw        action = "redraw"    // draws everything below the finished lines again
	help          action = "help"      // lists keys and commands
)

// situation is what the meaning of a key depends on.
type situation struct {
	working  bool // a turn runs or waits
	composed bool // the composer has text
	browsing bool // the composer has an older message, which wasn't changed
	waits    bool // a message of this person waits for the running turn to end
	asked    bool // a question is on the screen
}

// bind says what a key does. again reports whether it is pressed the second time in a
// short while.
func bind(key string, s situation, again bool) action {
	switch key {
	case "enter":
		if !s.composed {
			return nothing
		}
		return submit
	case "tab":
		switch {
		case s.composed && s.asked:
			return toQuestion
		case s.composed && s.working:
			return enqueue
		}
	case "up":
		switch {
		case !s.composed && s.waits:
			return takeBack
		case !s.composed || s.browsing:
			return older
		}
	case "down":
		if s.browsing {
			return newer
		}
	case "esc":
		switch {
		case s.working:
			return interrupt
		case again && !s.composed:
			return rewind
		}
		return nothing
	case "ctrl+c":
		switch {
		case again:
			return leave
		case s.composed:
			return clear
		case s.working:
			return interrupt
		}
		return warn
	case "ctrl+d":
		if !s.composed {
			return leave
		}
	case "shift+tab":
		return nextMode
	case "ctrl+g":
		return inEditor
	case "ctrl+v":
		return fromClipboard
	case "ctrl+r":
		return search
	case "ctrl+o":
		return lastOutput
	case "ctrl+z":
		return suspend
	case "ctrl+l":
		return redraw
	case "?":
		if !s.composed {
			return help
		}
	}
	return toComposer
}

// twice tells whether a key is pressed again within a second.
type twice struct {
	key string
	at  time.Time
}

func (t *twice) press(key string, now time.Time) (again bool) {
	again = t.key == key && now.Sub(t.at) <= time.Second
	t.key, t.at = key, now
	if again {
		t.key = "" // a third press begins anew
	}
	return again
}
