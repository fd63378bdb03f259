package mcp

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/tool"
)

// Looked is what a look at a server saw.
type Looked struct {
	Server   string // what it calls itself
	Version  string // of it
	Protocol string
	Tools    []Definition // and prompts
	Refused  []Refused
	Can      []string // what it offers: tools, resources, prompts, …
	Applied  *event.SandboxApplied
	Stopped  *event.SandboxViolation // what its boundary stopped; nil: nothing, as far as is known
	Printed  string                  // the end of what it printed besides its messages
}

// Boxing makes the boundary of a server that is started outside of sessions; nil: it has
// none.
type Boxing func(tool.Sink) (*tool.Box, error)

// Look starts a server outside of all sessions, reads what it has, and ends it. What is
// known of a server that can't be used comes with the error.
func (p *Pool) Look(ctx context.Context, s *manifest.Server, workspace string, box Boxing) (l Looked, err error) {
	err = p.visit(ctx, s, workspace, box, &l, func(_ context.Context, n *connection) error {
		if r := n.client.InitializeResult(); r != nil {
			l.Protocol = r.ProtocolVersion
			if r.ServerInfo != nil {
				l.Server, l.Version = visible(r.ServerInfo.Name), visible(r.ServerInfo.Version)
			}
		}
		l.Tools, l.Refused, l.Can = n.definitions(), n.refused, n.capabilities()
		return nil
	})
	return l, err
}

// visit starts a server outside of all sessions, has do use it within the time of a call,
// and ends it.
func (p *Pool) visit(ctx context.Context, s *manifest.Server, workspace string, box Boxing, l *Looked, do func(context.Context, *connection) error) (err error) {
	sink := &lookSink{looked: l}
	c := lookCall(workspace, sink)
	if box != nil {
		if c.Box, err = box(sink); err != nil {
			return err
		}
	}
	n, err := connect(ctx, s, surroundings{p.Environ, p.Grants}, c)
	if err != nil {
		if told, ok := errors.AsType[*tool.Error](err); ok {
			l.Printed = told.Text
		}
		return err
	}
	within, cancel := context.WithTimeout(ctx, timeoutOf(s))
	defer cancel()
	err = do(within, n)
	n.finish("closed")
	l.Printed = n.errs.tail()
	return err
}

// lookCall is a call that no session has.
func lookCall(workspace string, sink tool.Sink) tool.Call {
	return tool.Call{Dir: workspace, Sink: sink, Process: belay.ProcessID(belay.NewID(belay.PrefixProcess))}
}

// Together does n things at the same time and returns when all are done.
func Together(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// lookSink takes what is recorded of a look: no session has it.
type lookSink struct {
	tool.Sink
	looked *Looked
}

// Fact implements tool.Sink.
func (s *lookSink) Fact(p event.Payload) {
	if v, ok := p.(event.SandboxViolation); ok {
		s.looked.Stopped = &v
	}
}

// Durable implements tool.Sink.
func (s *lookSink) Durable(p event.Payload) error {
	if a, ok := p.(event.SandboxApplied); ok {
		s.looked.Applied = &a
	}
	return nil
}

// Output implements tool.Sink.
func (s *lookSink) Output(string) (tool.OutputWriter, error) { return unkept{io.Discard}, nil }

// Progress implements tool.Sink.
func (s *lookSink) Progress(tool.Progress) {}

type unkept struct{ io.Writer }

// Commit implements tool.OutputWriter.
func (unkept) Commit() (belay.Ref, error) { return belay.Ref{}, errors.New("nothing is kept") }

// Close implements tool.OutputWriter.
func (unkept) Close() error { return nil }

// WantsNetwork reports whether a program printed an error of a missing network.
func WantsNetwork(printed string) bool {
	for _, sign := range []string{"EAI_AGAIN", "ENOTFOUND", "ENETUNREACH", "ECONNREFUSED", "getaddrinfo", "network is unreachable", "Temporary failure in name resolution", "no such host", "Could not resolve host"} {
		if strings.Contains(printed, sign) {
			return true
		}
	}
	return false
}
