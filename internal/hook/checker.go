//go:build unix

// Package hook asks what judges calls outside of the runtime: programs, and
// servers over HTTP. Each gets a question as JSON and answers with JSON. It
// promises that an answer is one of the forms that package policy reads, that
// asking ends with its context, and that whatever else happens is an error: what
// that means for the call is the rules' business.
package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/process"
)

// systemPath is where programs that are named without a folder are looked for.
const systemPath = "PATH=" + process.SystemPath

// Runner asks checkers. Env is what programs get; Client sends what goes over HTTP.
type Runner struct {
	Env    []string
	Client *http.Client
}

// New returns a runner whose checkers get env as their environment. Whoever wrote a
// checker into the rules may name a server of this machine or network.
func New(env []string) *Runner {
	return &Runner{Env: env, Client: netdial.Client(netdial.Rules{Loopback: true, Private: true})}
}

// Ask puts a question to a checker. dir is the workspace.
func (r *Runner) Ask(ctx context.Context, c policy.Checker, dir string, question []byte) (policy.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit(), fmt.Errorf("it gave no answer within %s", c.Limit()))
	defer cancel()
	var raw []byte
	var err error
	switch c.Kind {
	case "process":
		raw, err = r.run(ctx, c, dir, question)
	case "http":
		raw, err = r.post(ctx, c.URL, question)
	default:
		err = fmt.Errorf("a checker of the kind %s can't be asked", c.Kind)
	}
	if ctx.Err() != nil {
		return policy.Answer{}, context.Cause(ctx)
	}
	if err != nil {
		return policy.Answer{}, err
	}
	return policy.ReadAnswer(raw)
}

// run starts the program with the question on its standard input. It says its
// answer on standard output and exits with 0.
func (r *Runner) run(ctx context.Context, c policy.Checker, dir string, question []byte) ([]byte, error) {
	path, err := program(c, dir)
	if err != nil {
		return nil, err
	}
	var out bounded
	p, err := process.Start(process.Command{Path: path, Argv: c.Argv, Dir: dir, Env: append(r.Env, systemPath), Stdin: question, Output: &out})
	if err != nil {
		return nil, fmt.Errorf("it can't be started: %w", err)
	}
	switch end := p.Wait(ctx); {
	case end.How != process.Exited:
		return nil, errors.New("it was ended before it answered")
	case end.Code != 0:
		return nil, fmt.Errorf("it ended with exit %d", end.Code)
	case out.more:
		return nil, fmt.Errorf("its answer has more than %d bytes", policy.MaxAnswer)
	}
	return out.kept.Bytes(), nil
}

// program is the file that a checker names: absolute, or a name that the system
// has, or of a workspace's checker a path in that.
func program(c policy.Checker, dir string) (string, error) {
	name := c.Argv[0]
	switch {
	case filepath.IsAbs(name):
		return name, nil
	case strings.Contains(name, "/"):
		if c.Tier != policy.TierWorkspace || !filepath.IsLocal(name) {
			return "", fmt.Errorf("%s is neither an absolute path nor a name", name)
		}
		return filepath.Join(dir, name), nil
	}
	if path := process.LookPath([]string{systemPath}, name); path != "" {
		return path, nil
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// post sends the question and reads the answer of a success.
func (r *Runner) post(ctx context.Context, url string, question []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(question))
	if err != nil {
		return nil, errors.New("its URL can't be read")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("it can't be reached: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered with status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, policy.MaxAnswer+1))
	if err == nil && len(raw) > policy.MaxAnswer {
		err = fmt.Errorf("its answer has more than %d bytes", policy.MaxAnswer)
	}
	return raw, err
}

// bounded keeps the beginning of what is written, and whether there was more.
type bounded struct {
	kept bytes.Buffer // not embedded: what copies into it would go around the bound
	more bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := policy.MaxAnswer - b.kept.Len(); len(p) > room {
		b.more = true
		b.kept.Write(p[:room])
		return len(p), nil
	}
	return b.kept.Write(p)
}
