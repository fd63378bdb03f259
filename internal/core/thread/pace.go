package thread

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// kind is what a tool's calls compete for.
type kind int

const (
	kindOther   kind = iota
	kindProcess      // programs of this machine
	kindNetwork      // what others answer
	kinds
)

// base is how many calls of a kind run at once when nothing speaks against it.
var base = [kinds]int64{kindOther: 5, kindProcess: 2, kindNetwork: 5}

// kindOf is a tool's kind by what it says it can do.
func kindOf(t belay.ToolSpec) kind {
	switch {
	case slices.Contains(t.Capabilities, capProcess):
		return kindProcess
	case slices.Contains(t.Capabilities, capNetwork):
		return kindNetwork
	}
	return kindOther
}

// Capabilities that matter to the thread. Source: package tool.
const (
	capProcess = "process"
	capNetwork = "network"
)

// throughput is how a tool's attempts went lately: whole numbers, so that every
// machine that folds the same facts has the same state.
type throughput struct {
	Tool   string `json:"tool"`
	Micros int64  `json:"us"`              // moving average of the duration
	Score  int64  `json:"score,omitempty"` // of failures, in thousandths
}

const (
	maxPaced     = 64        // tools whose pace is remembered
	shortest     = 10        // milliseconds that an attempt counts at least
	longest      = 3_600_000 // and at most
	target       = 2_000_000 // microseconds an attempt should take
	minScale     = 500       // thousandths of the base width for slow tools
	maxScale     = 1500      // and for fast ones: it makes up for failures
	minHealth    = 250       // what failures leave of the width
	failureCosts = 250       // what a failure adds to the score
	loadCosts    = 400       // and one that says that it was too much
)

// paced folds one attempt that ran: how long it took and, unless it went well,
// how it failed. What says nothing about the load doesn't count against a tool.
func (ps *programState) paced(tool string, millis int64, p *event.Problem) {
	cost := int64(0)
	if p != nil {
		switch {
		case p.Class == "cancelled" || p.Class == "lost" || p.Class == "skipped":
			return
		case p.Class == "timeout" || p.Code == "RATE_LIMITED":
			cost = loadCosts
		case p.Class == "transient" || p.Class == "internal":
			cost = failureCosts
		}
	}
	took := min(max(millis, shortest), longest) * 1000
	k := throughput{Tool: tool, Micros: took}
	if i := slices.IndexFunc(ps.Pace, func(o throughput) bool { return o.Tool == tool }); i >= 0 {
		k = ps.Pace[i]
		k.Micros = (4*k.Micros + took) / 5
		ps.Pace = slices.Delete(ps.Pace, i, i+1)
	}
	k.Score = min(k.Score*85/100+cost, 1000)
	ps.Pace = keep(append(ps.Pace, k), maxPaced)
}

// widths are how many calls of each kind may run at once now, from the pace of
// the tools that the step's calls need: wide while attempts are short and go
// well, narrower for slow ones and after failures, never over the base and
// never none.
func (d *decision) widths() (w [kinds]int64) {
	var sum, n, worst [kinds]int64
	for _, c := range d.Turn.Step.Calls {
		spec, ok := d.rules.Tool(c.Name)
		pace := find(d.Pace, func(o *throughput) bool { return o.Tool == c.Name })
		if c.Phase == CallOver || !ok || pace == nil {
			continue
		}
		k := kindOf(spec)
		sum[k] += pace.Micros
		n[k]++
		worst[k] = max(worst[k], pace.Score)
	}
	for k := range w {
		scale := int64(maxScale)
		if n[k] > 0 {
			scale = min(max(target*1000*n[k]/sum[k], minScale), maxScale)
		}
		w[k] = width(base[k], scale, worst[k])
	}
	return w
}

// width is a base scaled by latency and failures, both in thousandths, rounded.
func width(base, scale, score int64) int64 {
	w := (base*scale*max(1000-score, minHealth) + 500_000) / 1_000_000
	return min(max(w, 1), base)
}

// slots are how many more calls of each kind may start.
type slots [kinds]int64

func (d *decision) slots() slots {
	free := slots(d.widths())
	for _, c := range d.Turn.Step.Calls {
		if c.Phase == CallRunning {
			spec, _ := d.rules.Tool(c.Name)
			free[kindOf(spec)]--
		}
	}
	return free
}

// take uses up a slot if there is one.
func (f *slots) take(t belay.ToolSpec) bool {
	k := kindOf(t)
	if f[k] <= 0 {
		return false
	}
	f[k]--
	return true
}
