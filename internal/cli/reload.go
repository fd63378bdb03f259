package cli

import (
	"context"
	"crypto/tls"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/server"
)

// certificate is what a server shows who it is by, read again when it is told to.
type certificate struct {
	cert, key string // PEM files; empty: there is none
	now       atomic.Pointer[tls.Certificate]
}

// load reads the files. When they can't be used the certificate stays what it was.
func (c *certificate) load() error {
	if c.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return belay.Errorf(belay.CodeUsage, "the certificate and its key can't be used: %s", reason(err)).At("--tls-cert").WithHint("name two PEM files that belong together")
	}
	c.now.Store(&pair)
	return nil
}

// config is nil where there is no certificate.
func (c *certificate) config() *tls.Config {
	if c.cert == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }}
}

// reloading reads the certificate again with each SIGHUP until the function that it
// returns is called. What became of it is in the log and on record.
func reloading(ctx context.Context, s *server.Server, c *certificate) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-hangups:
				s.Reloaded(ctx, c.load())
			case <-done:
				return
			}
		}
	})
	return func() { signal.Stop(hangups); close(done); wg.Wait() }
}
