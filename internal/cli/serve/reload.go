package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/server"
)

// certificate is the server's TLS certificate, read again on SIGHUP.
type certificate struct {
	cert, key string // PEM files; empty: there is none
	now       atomic.Pointer[tls.Certificate]
}

// load reads the files. When they can't be used the certificate stays what it was.
func (c *certificate) load() error {
	use, err := c.again()
	if err == nil {
		use()
	}
	return err
}

// again reads the files, and returns what makes them count.
func (c *certificate) again() (use func(), err error) {
	if c.cert == "" {
		return func() {}, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if pe, ok := errors.AsType[*os.PathError](err); ok && pe.Path == c.key {
		return nil, belay.Errorf(belay.CodeUsage, "the key can't be read: %s", files.Reason(err)).At("--tls-key " + c.key).WithHint("name a PEM file that the server can read")
	}
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the certificate and its key can't be used: %s", files.Reason(err)).At("--tls-cert " + c.cert).WithHint("name two PEM files that belong together")
	}
	return func() { c.now.Store(&pair) }, nil
}

// config is nil where there is no certificate.
func (c *certificate) config() *tls.Config {
	if c.cert == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }}
}

// tenants are those of a server.
type tenants struct {
	a     *command.Program
	ws    string
	roots []string // folders that sessions may work in
	pair  *certificate

	mu   sync.Mutex
	open []*host.Workspaces
}

// readAgain reads what a server read when it started: its certificate, and of each
// tenant the providers, declared tools and prices. All of it counts then, or,
// when something can't be used, none of it.
func (s *tenants) readAgain(ctx context.Context) error {
	use, err := s.pair.again()
	if err != nil {
		return err
	}
	uses := []func(){use}
	s.mu.Lock()
	open := slices.Clone(s.open)
	s.mu.Unlock()
	for _, w := range open {
		use, err := w.ReadAgain(ctx)
		if err != nil {
			return err
		}
		uses = append(uses, use)
	}
	for _, use := range uses {
		use()
	}
	return nil
}

// reloading reads again with each SIGHUP until the function that it returns is
// called. Its outcome is in the log and on record.
func reloading(ctx context.Context, s *server.Server, again func(context.Context) error) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	end := onSignals(hangups, func(os.Signal) { s.Reloaded(ctx, again(ctx)) })
	return func() { signal.Stop(hangups); end() }
}
