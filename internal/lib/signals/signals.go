// Package signals hears what the system or a person asks of this process.
package signals

import (
	"context"
	"os"
	"os/signal"
	"time"
)

// Once is how long a signal that comes again is the same one. GNU timeout, npm and make
// signal a program and then its group, which it is of, too.
const Once = 500 * time.Millisecond

// Notify sends signals to a channel until the context ends. One that comes again within Once
// is left out. As with the standard library's, what the channel has no room for is lost.
func Notify(ctx context.Context, c chan<- os.Signal, of ...os.Signal) {
	heard := make(chan os.Signal, 8)
	signal.Notify(heard, of...)
	go func() {
		defer signal.Stop(heard)
		pass(ctx, heard, c)
	}()
}

func pass(ctx context.Context, heard <-chan os.Signal, c chan<- os.Signal) {
	last := map[os.Signal]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-heard:
			now := time.Now()
			if at, again := last[s]; again && now.Sub(at) < Once {
				continue
			}
			last[s] = now
			select {
			case c <- s:
			default:
			}
		}
	}
}
