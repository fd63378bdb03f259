package anthropic

import (
	"errors"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// unbound remembers conversations whose thinking the vendor refused, by where
// their first part is in memory, and how many of their messages are sent without.
// What is forgotten is refused, and learnt, once more.
type unbound struct {
	mu    sync.Mutex
	until map[*belay.Part]int
}

// maxUnbound bounds the conversations that are remembered.
const maxUnbound = 1000

func headPart(msgs []belay.Message) *belay.Part {
	if len(msgs) == 0 || len(msgs[0].Parts) == 0 {
		return nil
	}
	return &msgs[0].Parts[0]
}

// add notes that the messages go without their thinking from now on; it tells
// whether that is news.
func (u *unbound) add(msgs []belay.Message) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	head := headPart(msgs)
	if head == nil || u.until[head] >= len(msgs) {
		return false
	}
	if u.until == nil || len(u.until) >= maxUnbound {
		u.until = map[*belay.Part]int{}
	}
	u.until[head] = len(msgs)
	return true
}

// messages is how many of a conversation's are sent without thinking.
func (u *unbound) messages(msgs []belay.Message) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.until[headPart(msgs)]
}

// refusesThinking reports whether the vendor doesn't take thinking back.
// Source: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting, November 2026.
func refusesThinking(err error) bool {
	f, ok := errors.AsType[*model.Error](err)
	return ok && f.Class == "bad_request" && strings.Contains(f.Message, "thinking") &&
		(strings.Contains(f.Message, "signature") || strings.Contains(f.Message, "bound to") || strings.Contains(f.Message, "cannot be modified"))
}
