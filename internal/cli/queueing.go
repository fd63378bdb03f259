package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
)

// queueing is how threads take turns while one runs, with what was given over it.
func (p *parse) queueing(q belay.Queueing, c Config) belay.Queueing {
	if c.Queue != "" {
		q.Mode = p.queueMode("--queue", c.Queue)
	}
	if c.QueueDrop != "" {
		q.Drop = belay.QueueDrop(p.oneOf("--queue-drop", c.QueueDrop, asText(belay.QueueDrops)...))
	}
	if c.QueueCap != "" {
		q.Cap = p.queueCap("--queue-cap", c.QueueCap)
	}
	if c.QueueQuiet != "" {
		q.Quiet = p.quiet("--queue-quiet", c.QueueQuiet)
	}
	return q
}

func (p *parse) queueMode(flag, v string) belay.QueueMode {
	return belay.QueueMode(p.oneOf(flag, v, asText(belay.QueueModes)...))
}

func (p *parse) queueCap(flag, v string) int {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > belay.MaxQueued {
		p.bad(flag, belay.CodeUsage, flag+"=10", "%q is not a number from 1 to %d", v, belay.MaxQueued)
	}
	return n
}

func (p *parse) quiet(flag, v string) belay.Duration {
	d, err := time.ParseDuration(v)
	if err != nil || d < time.Millisecond || d > time.Duration(belay.MaxQuiet) {
		p.bad(flag, belay.CodeUsage, flag+"=2s", "%q is not a length of time from 1ms to %s", v, belay.MaxQuiet)
	}
	return belay.Duration(d)
}

func asText[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return out
}

// wholeQueueing is a policy with its defaults.
func wholeQueueing(q belay.Queueing) belay.Queueing {
	return belay.Queueing{Mode: cmp.Or(q.Mode, belay.QueueEnqueue), Cap: cmp.Or(q.Cap, belay.MaxQueued), Drop: cmp.Or(q.Drop, belay.DropNew), Quiet: cmp.Or(q.Quiet, belay.DefaultQuiet)}
}

// saidQueueing is a policy in one line.
func saidQueueing(q belay.Queueing) string {
	q = wholeQueueing(q)
	s := fmt.Sprintf("%s, at most %s, then drop %s", q.Mode, term.Plural(q.Cap, "turn"), q.Drop)
	if q.Mode == belay.QueueCollect {
		s += ", quiet " + q.Quiet.String()
	}
	return s
}

// narrowsQueue reports whether a workspace's file may set this about turns that
// wait: what refuses more of those that come. An untrusted file can't choose to
// end, join or take back a turn that was accepted.
func (l *layers) narrowsQueue(name, value string) bool {
	drop := cmp.Or(l.set["queue-drop"].value, string(belay.DropNew))
	switch name {
	case "queue":
		return value == string(belay.QueueReject)
	case "queue-drop":
		return value == string(belay.DropNew)
	case "queue-cap": // with another policy fewer places end more of what was accepted
		return drop == string(belay.DropNew) && fewer(value, cmp.Or(l.set[name].value, strconv.Itoa(belay.MaxQueued)))
	}
	return false
}
