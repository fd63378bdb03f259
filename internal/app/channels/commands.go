// Package channels has the use cases of peers that follow what happens.
package channels

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.Define("reconnect_channel", auth.Read, true, "Register a channel, or recover one: a snapshot, and where its stream continues.", reconnectChannel),
		app.Define("ack_events", auth.Read, true, "Acknowledge what a channel has, up to a position.", ackEvents),
	}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.SessionModel("channel_summary", "sessions (channels)", "The peers that follow a session, or everything: how far they are, what was forwarded to them.", channelSummary),
		app.DefineRead(app.Read{Name: "listChannels", Path: "/v1/channels", Tag: "reads", Doc: "List the peers that registered as channels."}, listChannels),
	}
}
