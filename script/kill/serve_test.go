package kill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/client"
)

// serving is a machine with a server that dies and is started again.
type serving struct {
	*machine
	token string // of its owner, told at the first start

	mu      sync.Mutex
	address string // of the newest process that came up
	proc    *os.Process
	ending  bool
	deaths  int
	waits   []time.Duration // from a death to the next address
	stderr  bytes.Buffer
}

// serverName is how the clients name the server, wherever it listens.
const serverName = "belay.test"

func newServing(t *testing.T) *serving {
	t.Helper()
	s := &serving{machine: newMachine(t)}
	script, err := filepath.Abs("testdata/serve.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.script = script
	for n := range sessionsOfCrowd {
		dir := s.workspace(n)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("a note\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// workspace is the folder of the n-th session.
func (s *serving) workspace(n int) string { return filepath.Join(s.ws, fmt.Sprintf("w%d", n)) }

// keepUp runs servers until one ends well: the n-th is killed at the n-th point,
// those after them aren't.
func (s *serving) keepUp(ready chan<- struct{}, kills ...int) error {
	var died time.Time
	var once sync.Once
	for i := 0; ; i++ {
		env := []string{countIn + "=" + filepath.Join(s.dir, "points")}
		if s.script != "" {
			env = append(env, "BELAY_SCRIPT="+s.script)
		}
		if i < len(kills) {
			env = append(env, killAt+"="+strconv.Itoa(kills[i]))
		}
		cmd := s.command(env, "--json", "serve", "--listen", "127.0.0.1:0", "--host", serverName, "--drain", "5s")
		cmd.Stderr = &s.stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		var said struct{ URL, Token string }
		if line, err := bufio.NewReader(out).ReadBytes('\n'); err == nil { // else it died before it came up
			if err := json.Unmarshal(line, &said); err != nil || said.URL == "" {
				return errors.Join(err, fmt.Errorf("it says %s", line), cmd.Wait())
			}
			s.up(cmd.Process, said.URL, said.Token, died)
			once.Do(func() { close(ready) })
		}
		err = cmd.Wait()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
			return err
		}
		died = time.Now()
		s.down()
	}
}

func (s *serving) up(p *os.Process, url, token string, died time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc, s.address = p, url[len("http://"):]
	if token != "" {
		s.token = token
	}
	if !died.IsZero() {
		s.waits = append(s.waits, time.Since(died))
	}
	if s.ending {
		p.Signal(syscall.SIGTERM) //nolint:errcheck // it is dying
	}
}

func (s *serving) down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaths++
	s.proc, s.address = nil, ""
}

// end asks the server that runs, or the one that comes up next, to end well.
func (s *serving) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	if s.proc != nil {
		s.proc.Signal(syscall.SIGTERM) //nolint:errcheck // it is dying
	}
}

// client is one of a caller's own: connections aren't shared. dials counts them.
func (s *serving) client(dials *atomic.Int64) (*client.Client, func(), error) {
	tr := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		s.mu.Lock()
		at := s.address
		s.mu.Unlock()
		if at == "" {
			return nil, fmt.Errorf("no server runs")
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, at)
		if err == nil && dials != nil {
			dials.Add(1)
		}
		return conn, err
	}}
	s.mu.Lock()
	token := s.token
	s.mu.Unlock()
	c, err := client.New("http://"+serverName, client.Options{Token: token, HTTP: &http.Client{Transport: tr}})
	return c, tr.CloseIdleConnections, err
}

// serveLife plays the crowd against a server that dies at these points of its
// first processes, and holds what is left against the promises. points are those
// of the process that ended well. limited: what sessions may spend is.
func serveLife(t *testing.T, seed uint64, limited bool, kills ...int) (points int, sum tally) {
	t.Helper()
	s := newServing(t)
	defer s.discard()
	if limited {
		s.limit()
	}
	what := fmt.Sprintf("kills %v, seed %d", kills, seed)
	ready, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- s.keepUp(ready, kills...) }()
	select {
	case <-ready:
	case err := <-over:
		t.Fatalf("%s: the server doesn't come up: %v\n%s", what, err, s.stderr.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	c := s.gather(seed)
	c.play(ctx, what)
	s.end()
	if err := <-over; err != nil {
		t.Errorf("%s: the last server ended badly: %v", what, err)
	}
	c.check(what)
	if t.Failed() {
		os.WriteFile(filepath.Join(s.dir, "serve.log"), s.stderr.Bytes(), 0o600) //nolint:errcheck // it only helps
		t.FailNow()
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, "points"))
	if err == nil {
		points, err = strconv.Atoi(string(raw))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.tally.deaths, c.tally.waits = s.deaths, s.waits
	return points, c.tally
}

// deaths is how many of the points a server dies at: a few, with BELAY_KILL=full
// some, with BELAY_KILL_SERVER=all every one.
func deaths(points int) int {
	switch {
	case os.Getenv("BELAY_KILL_SERVER") == "all":
		return points
	case full:
		return 20
	}
	return 3
}

// fewPoints is less than any life has.
const fewPoints = 300

// TestKillServer lets a server die while twenty clients submit, approve, interrupt
// and follow. Each life has two deaths: one at a point of the whole range, and one
// of the process that takes over. In half of them budgets and quotas limit what is
// spent, and some sessions have two threads that share it.
// Guarantee: O17, V13, E17, E71.
func TestKillServer(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 6))
	begun := time.Now()
	if race { // it is ten times as slow; one life shows whether the clients race
		_, sum := serveLife(t, seed, true, 1+r.IntN(fewPoints), 1+r.IntN(fewPoints))
		t.Logf("%d deaths, %.1f s, seed %d; %s", sum.deaths, time.Since(begun).Seconds(), seed, sum)
		return
	}
	all, sum := serveLife(t, seed, true)
	if all < fewPoints {
		t.Fatalf("a life without a death has only %d points", all)
	}
	n := deaths(all)
	offset := r.Float64()
	for i := range n {
		at := 1 + int((float64(i)+offset)*float64(all)/float64(n))
		points, got := serveLife(t, seed+uint64(at), i%2 == 0, at, 1+r.IntN(all))
		if got.deaths == 0 { // it had fewer points than the first one: another dies well before its end
			at = 1 + r.IntN(points/2)
			_, got = serveLife(t, seed+uint64(at), i%2 == 0, at, 1+r.IntN(all))
		}
		if got.deaths == 0 {
			t.Errorf("a life ended before its point %d, seed %d", at, seed)
		}
		sum.add(got)
	}
	if sum.deaths < n || sum.acknowledged == 0 || sum.interrupted == 0 || sum.breaks == 0 || sum.ops.ops["session session recalled"] == 0 || sum.ops.ops["ledger quota returned"] == 0 {
		t.Errorf("%d lives: %+v, seed %d", n, sum, seed)
	}
	t.Logf("died at %d of %d points, each %d. (make killserver: at all); %d deaths, %.1f s, seed %d", n, all, all/n, sum.deaths, time.Since(begun).Seconds(), seed)
	t.Logf("%s; %v", sum, sum.ops.ops)
}
