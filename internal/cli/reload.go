package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/lib/readfile"
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
		return nil, belay.Errorf(belay.CodeUsage, "the key can't be read: %s", readfile.Reason(err)).At("--tls-key " + c.key).WithHint("name a PEM file that the server can read")
	}
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the certificate and its key can't be used: %s", readfile.Reason(err)).At("--tls-cert " + c.cert).WithHint("name two PEM files that belong together")
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

// readAgain reads what a server read when it started: its certificate, and of each
// tenant the providers, declared tools and prices. All of it counts then, or,
// when something can't be used, none of it.
func (a *app) readAgain(ctx context.Context, c *certificate) error {
	use, err := c.again()
	if err != nil {
		return err
	}
	uses := []func(){use}
	a.mu.Lock()
	tenants := slices.Clone(a.houses)
	a.mu.Unlock()
	for _, w := range tenants {
		use, err := w.again(ctx)
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

// again reads what is there for the workspaces that were used so far, and returns
// what makes it count. Turns that run keep what they began with.
func (w *wiring) again(ctx context.Context) (use func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.a
	n := &app{Sys: old.Sys, Place: old.Place, kong: old.kong, opened: old.opened, wrapProvider: old.wrapProvider, extra: old.extra, tools: old.tools, origin: old.origin, held: true}
	n.hiding.Do(func() { n.hidden = old.secrets() })
	old.mu.Lock()
	places := slices.Sorted(maps.Keys(old.shops))
	old.mu.Unlock()
	for _, ws := range places {
		if err := n.whole(ctx, ws); err != nil {
			return nil, err
		}
	}
	if _, err := n.catalog(); err != nil {
		return nil, err
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		old.mu.Lock()
		old.shops, old.here, old.configs, old.usable = n.shops, n.shops[old.Workspace], nil, n.usable
		old.mu.Unlock()
		m := &old.models
		m.mu.Lock()
		defer m.mu.Unlock()
		m.made, m.entries, m.cat, m.looked = nil, nil, nil, false
		m.offer, m.offers = n.models.offers[old.Workspace], n.models.offers
	}, nil
}

// whole reads everything that turns in a workspace are decided by, and says the
// first mistake in it: manifests, configuration, rules.
func (a *app) whole(ctx context.Context, ws string) error {
	shop, err := a.loadWorkspaceTools(ctx, ws)
	if err != nil {
		return err
	}
	a.describe(ctx, ws)
	a.models.mu.Lock()
	o := a.models.offer
	a.models.mu.Unlock()
	if o.broken != nil {
		return o.broken
	}
	for _, name := range slices.Sorted(maps.Keys(o.services)) {
		s, err := a.service(name)
		if err == nil {
			_, err = netdial.ParseBase(s.base)
		}
		if err != nil {
			return at(err, s.where)
		}
	}
	_, err = a.governs(ctx, ws, shop.set.Specs())
	return err
}

// at is an error with a place, if it has none.
func at(err error, where string) error {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok || e.Where != "" {
		return err
	}
	placed := *e
	placed.Where = where
	return &placed
}

// reloading reads again with each SIGHUP until the function that it returns is
// called. Its outcome is in the log and on record.
func reloading(ctx context.Context, s *server.Server, again func(context.Context) error) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-hangups:
				s.Reloaded(ctx, again(ctx))
			case <-done:
				return
			}
		}
	})
	return func() { signal.Stop(hangups); close(done); wg.Wait() }
}
