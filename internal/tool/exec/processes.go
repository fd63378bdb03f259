//go:build unix

package exec

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

//go:embed process.md
var processDoc string

//go:embed send.md
var sendDoc string

type processArgs struct {
	ID     string  `json:"id,omitempty" jsonschema:"which; without it all are listed"`
	Offset *int64  `json:"offset,omitempty" jsonschema:"first byte; default what is new"`
	Wait   float64 `json:"wait_seconds,omitempty" jsonschema:"for output, at most 100"`
}

const (
	maxWait = 100 * time.Second
	settle  = 100 * time.Millisecond // what belongs together comes together
	window  = head + tail            // bytes that are read at once
)

// Processes lists and reads what runs in the background of a thread, and what
// is kept of what ran there.
func Processes() tool.Tool {
	spec := tool.Spec{
		Name: "process", Doc: strings.TrimSpace(processDoc), Effect: belay.Pure, ReadOnly: true, Polling: true, Access: belay.Read,
		Capabilities: []string{tool.CapProcesses}, OutputLimit: window + 1<<10,
	}
	return tool.New(spec, func(ctx context.Context, c tool.Call, in processArgs) (tool.Result, error) {
		if in.Wait < 0 || in.Wait > maxWait.Seconds() {
			return tool.Result{}, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "wait_seconds must be at least 0 and at most %d", int(maxWait.Seconds()))
		}
		if in.Offset != nil && *in.Offset < 0 {
			return tool.Result{}, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "offset must be at least 0")
		}
		if in.ID == "" {
			return tool.Result{Text: listed(c)}, nil
		}
		if j := found(c, in.ID); j != nil {
			return j.poll(ctx, in)
		}
		return recall(ctx, c, in)
	})
}

func jobs(c tool.Call) (all []*job) {
	if c.Processes == nil {
		return nil
	}
	for _, r := range c.Processes.Left() {
		if j, ok := r.(*job); ok {
			all = append(all, j)
		}
	}
	return all
}

func found(c tool.Call, id string) *job {
	all := jobs(c)
	if i := slices.IndexFunc(all, func(j *job) bool { return string(j.ID()) == id }); i >= 0 {
		return all[i]
	}
	return nil
}

func listed(c tool.Call) string {
	var b strings.Builder
	for _, j := range jobs(c) {
		_, total, _ := j.pieces.window(0, 0)
		fmt.Fprintf(&b, "%s %s, %d bytes: %s\n", j.ID(), j.status(), total, strings.Join(recorded(j.p.Argv), " "))
	}
	if b.Len() == 0 {
		return "nothing runs in the background"
	}
	return b.String()
}

// status is how the job stands, in words.
func (j *job) status() string {
	select {
	case <-j.proc.Done():
		return KeptOf([]event.Envelope{{Data: Ended(j.proc.Exit(), j.out.printed(), nil, nil)}}).Status
	default:
		return fmt.Sprintf("running for %s, pid %d", time.Since(j.began).Round(time.Second), j.proc.PID)
	}
}

// poll reads the output from an offset on, or what wasn't read before. If there
// is nothing yet it waits for some, or for the end.
func (j *job) poll(ctx context.Context, in processArgs) (tool.Result, error) {
	from := j.seen.Load()
	if in.Offset != nil {
		from = *in.Offset
	}
	if err := j.await(ctx, from, time.Duration(in.Wait*float64(time.Second))); err != nil {
		return tool.Result{}, err
	}
	status := j.status() // before the output: what ended has printed all
	b, total, err := j.pieces.window(from, window)
	if err != nil {
		return tool.Result{}, err
	}
	j.seen.Store(from + int64(len(b)))
	return tool.Result{Text: shownWindow(b, from, total) + status}, nil
}

// await waits until there is output from an offset on, or the job has ended.
func (j *job) await(ctx context.Context, from int64, most time.Duration) error {
	if most <= 0 {
		return nil
	}
	t := time.NewTimer(most)
	defer t.Stop()
	for {
		more := j.out.next()
		if _, total, _ := j.pieces.window(0, 0); total > from {
			t.Reset(settle)
			more = nil
		}
		select {
		case <-more:
		case <-j.proc.Done():
			return nil
		case <-t.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// shownWindow is a part of an output as the model reads it.
func shownWindow(b []byte, from, total int64) string {
	to := from + int64(len(b))
	text := closed(display(process.PlainText(b)))
	if process.Binary(b) {
		text = fmt.Sprintf("[binary data, not shown: %d bytes]\n", len(b))
	}
	if from == 0 && to >= total {
		return text
	}
	return text + fmt.Sprintf("[bytes %d to %d of %d]\n", from, to, total)
}

// recall reads what is kept of a process that has ended.
func recall(ctx context.Context, c tool.Call, in processArgs) (tool.Result, error) {
	k, err := keptOf(ctx, c, in.ID)
	if err != nil {
		return tool.Result{}, err
	}
	from := max(0, k.Total-window)
	if in.Offset != nil {
		from = *in.Offset
	}
	b, at, err := windowOf(c.Sink.Part, k.pieces, from, window)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: shownWindow(b, at, k.Total) + k.Status}, nil
}

// keptOf is what facts say of a process of the thread that isn't here any more.
func keptOf(ctx context.Context, c tool.Call, id string) (Kept, error) {
	var facts []event.Envelope
	if c.Processes != nil {
		var err error
		if facts, err = c.Processes.Recorded(ctx, belay.ProcessID(id)); err != nil {
			return Kept{}, err
		}
	}
	if len(facts) == 0 {
		return Kept{}, tool.Failf(tool.NotFound, CodeNoProcess, "this thread has no process %s", id).WithHint("process without an id lists them")
	}
	return KeptOf(facts), nil
}

// Kept is what facts say of a process.
type Kept struct {
	Total  int64  // bytes of its output
	Status string // how it ended, in words
	Ended  bool

	pieces []piece
}

// KeptOf folds the facts of a process and the output.expired of its session, in
// the order of the log.
func KeptOf(facts []event.Envelope) Kept {
	k := Kept{Status: "its end is not recorded"}
	whole := func(ref *belay.Ref) {
		k.Ended = true
		if ref != nil { // what was recorded meanwhile is in it
			k.pieces = []piece{{size: ref.Size, ref: ref}}
		}
	}
	for _, e := range facts {
		switch f := e.Data.(type) {
		case event.ProcessOutput:
			k.pieces = append(k.pieces, pieceOf(f))
		case event.OutputExpired:
			for i, p := range k.pieces {
				if p.ref != nil && p.ref.Digest == f.Digest {
					k.pieces[i].let, k.pieces[i].when = &f, e.Time
				}
			}
		case event.ProcessCompleted:
			whole(f.Output)
			k.Status = fmt.Sprintf("exit %d", f.Exit)
		case event.ProcessTerminated:
			whole(f.Output)
			k.Status = "ended (" + f.Reason + ") by " + f.Signal
		case event.ProcessFailed:
			whole(nil)
			k.Status = f.Class + ": " + f.Reason
		}
	}
	if n := len(k.pieces); n > 0 {
		k.Total = k.pieces[n-1].offset + k.pieces[n-1].size
	}
	return k
}

// Window is up to n bytes of the output from an offset on, fewer at its end, and
// where they begin: later where nothing was kept in between. part reads kept
// content. Content that is gone is a *tool.Error.
func (k Kept) Window(part func(d belay.Digest, offset, n int64) ([]byte, error), offset int64, n int) (b []byte, at int64, err error) {
	return windowOf(part, k.pieces, offset, n)
}

// ended is the failure of what only a running process can take.
func ended(id, status string) error {
	return tool.Failf(tool.Conflict, CodeEnded, "%s has ended: %s", id, status).WithHint("process reads what it printed")
}

type sendArgs struct {
	ID      string `json:"id" jsonschema:"which"`
	Input   string `json:"input,omitempty" jsonschema:"text, with its newline"`
	Control string `json:"control,omitempty" jsonschema:"eof, kill, or ROWSxCOLS to resize its terminal"`
}

// Sender writes to what runs in the background, resizes its terminal, or ends it.
func Sender() tool.Tool {
	spec := tool.Spec{
		Name: "process_send", Doc: strings.TrimSpace(sendDoc), Effect: belay.AtMostOnce, Access: belay.Write,
		Capabilities: []string{tool.CapProcesses}, OutputLimit: window + 1<<10,
	}
	return tool.New(spec, func(ctx context.Context, c tool.Call, in sendArgs) (tool.Result, error) {
		j := found(c, in.ID)
		switch {
		case j == nil:
			k, err := keptOf(ctx, c, in.ID)
			if err != nil {
				return tool.Result{}, err
			}
			return tool.Result{}, ended(in.ID, k.Status)
		case in.Control == "" && in.Input == "":
			return tool.Result{}, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "give input or control")
		case in.Control == "" || in.Control == "eof":
			return j.write(in.Input, in.Control == "eof")
		case in.Input != "":
			return tool.Result{}, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "%s stands alone, without input", in.Control)
		case in.Control == "kill":
			return j.kill(ctx)
		}
		return j.resize(in.Control)
	})
}

// kill ends the job and waits until its end is recorded.
func (j *job) kill(ctx context.Context) (tool.Result, error) {
	j.proc.Stop(tool.Cancelled)
	select {
	case <-j.over:
		return tool.Result{Text: j.status()}, nil
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
}

func (j *job) resize(size string) (tool.Result, error) {
	var s process.Size
	rows, cols, _ := strings.Cut(size, "x")
	s.Rows, _ = strconv.Atoi(rows)
	s.Cols, _ = strconv.Atoi(cols)
	if s.Rows < 1 || s.Cols < 1 || s.Rows > maxSide || s.Cols > maxSide {
		return tool.Result{}, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "control must be eof, kill, or a size such as 40x120 of at most %dx%d", maxSide, maxSide)
	}
	if err := j.Resize(s.Rows, s.Cols); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: "its terminal has " + size + " now"}, nil
}

func (j *job) write(input string, end bool) (tool.Result, error) {
	n, err := j.Send(input, end)
	if n > 0 || end && err == nil {
		j.call.Sink.Fact(event.ProcessInput{Bytes: int64(n), End: end && err == nil})
	}
	if err := j.told(err, CodeNoInput, fmt.Sprintf("it took %d of %d bytes", n, len(input))); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: fmt.Sprintf("sent %d bytes; process reads the output", n)}, nil
}

// told is an error of the process as the model reads it.
func (j *job) told(err error, code, why string) error {
	select {
	case <-j.proc.Done():
		if err != nil {
			return ended(string(j.ID()), j.status())
		}
	default:
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, process.ErrNoInput), errors.Is(err, process.ErrFull):
		return tool.Failf(tool.Conflict, code, "%s: %v; %s", j.ID(), err, why)
	}
	return err
}
