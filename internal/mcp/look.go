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
	Tools    []Definition
	Refused  []Refused
	Can      []string // what it offers: tools, resources, prompts, …
	Applied  *event.SandboxApplied
	Stopped  *event.SandboxViolation // what its boundary stopped; nil: nothing, as far as is known
	Printed  string                  // the end of what it printed besides its messages
}

// Look starts a server outside of all sessions, reads what it has, and ends it. box
// makes its boundary; nil: it has none. What is known of a server that can't be used
// comes with the error.
func Look(ctx context.Context, s *manifest.Server, environ []string, workspace string, box func(tool.Sink) (*tool.Box, error)) (l Looked, err error) {
	sink := &lookSink{looked: &l}
	c := tool.Call{Dir: workspace, Sink: sink, Process: belay.ProcessID(belay.NewID(belay.PrefixProcess))}
	if box != nil {
		if c.Box, err = box(sink); err != nil {
			return l, err
		}
	}
	n, err := connect(ctx, s, environ, c)
	if err != nil {
		if told, ok := errors.AsType[*tool.Error](err); ok {
			l.Printed = told.Text
		}
		return l, err
	}
	if r := n.client.InitializeResult(); r != nil {
		l.Protocol = r.ProtocolVersion
		if r.ServerInfo != nil {
			l.Server, l.Version = visible(r.ServerInfo.Name), visible(r.ServerInfo.Version)
		}
	}
	l.Tools, l.Refused, l.Can = n.definitions(), n.refused, n.capabilities()
	n.finish("closed")
	l.Printed = n.errs.tail()
	return l, nil
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

// WantsNetwork reports whether what a program printed says that it reached nobody.
func WantsNetwork(printed string) bool {
	for _, sign := range []string{"EAI_AGAIN", "ENOTFOUND", "ENETUNREACH", "ECONNREFUSED", "getaddrinfo", "network is unreachable", "Temporary failure in name resolution", "no such host", "Could not resolve host"} {
		if strings.Contains(printed, sign) {
			return true
		}
	}
	return false
}
