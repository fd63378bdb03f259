package pages

// deep is the room that Deepen makes, in bytes.
const deep = 30 << 10

// Deepen gives the stack of the goroutine that calls it room for a long chain of
// calls, at once. A stack begins small, and each time it grows the runtime looks
// up every function on it in tables that lie all over the program's file: early,
// while few are there, that is cheap, and one time is enough. It is for goroutines
// that will write to the store, for example, whose stacks grow three times
// otherwise. Nothing is written, so the room takes no memory until it is used.
func Deepen() { reserve(false) }

// reserve has the frame of what it doesn't do: the runtime makes room for a frame
// before a function begins.
//
//go:noinline
func reserve(use bool) byte {
	if !use {
		return 0
	}
	var room [deep]byte
	return last(&room)
}

//go:noinline
func last(room *[deep]byte) byte { return room[len(room)-1] }
