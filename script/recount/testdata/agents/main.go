// Command agents counts what belay agents stats says, from the output of belay events --json:
// what isn't 0 of each agent. It is a module of its own, of the standard library alone.
package main

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"time"
)

// line is what is read of a line of belay events --json.
type line struct {
	Type, TurnID string
	Timestamp    time.Time
	Payload      struct {
		Turn, Outcome string
		Number        int
		Agent         struct{ Name string }
		Check         struct{ Status string }
		Stats         struct {
			ActiveMs float64
			Usage    struct {
				Input, Output float64
				Reported      bool
			}
			Cost struct{ MicroUsd float64 }
		}
	}
}

func main() {
	type key struct{ agent, figure string }
	sums, read, wrote, took, agents, again := map[key]float64{}, map[string]float64{}, map[string]float64{}, map[string][]float64{}, map[string]string{}, map[string]bool{}
	for dec := json.NewDecoder(os.Stdin); dec.More(); {
		var l line
		_ = dec.Decode(&l) // payloads of other types have other fields
		p, s, a := l.Payload, l.Payload.Stats, agents[l.TurnID]
		switch l.Type {
		case "task.attempt.started":
			again[p.Turn] = p.Number > 1
		case "turn.started":
			agents[l.TurnID] = p.Agent.Name
		case "task.progress":
			sums[key{a, "gateReds"}] += map[string]float64{"failed": 1, "unknown": 1}[p.Check.Status]
		case "turn.completed", "turn.failed":
			p.Outcome = cmp.Or(p.Outcome, "completed")
			if took[a] = append(took[a], s.ActiveMs); s.Usage.Reported {
				read[a], wrote[a] = read[a]+s.Usage.Input, wrote[a]+s.Usage.Output
			}
			week := map[int]string{0: "week ", 1: "before "}[int(time.Since(l.Timestamp).Hours()/24/7)]
			for figure, n := range map[string]float64{"runs": 1, p.Outcome: 1, "tokens": s.Usage.Input + s.Usage.Output, "cost": s.Cost.MicroUsd, "retries": map[bool]float64{true: 1}[again[l.TurnID]]} {
				sums[key{a, figure}] += n
				sums[key{a, week + figure}] += n
			}
		}
	}
	for a, ms := range took {
		slices.Sort(ms)
		sums[key{a, "p50"}], sums[key{a, "p95"}] = ms[(len(ms)*50+99)/100-1], ms[(len(ms)*95+99)/100-1]
		sums[key{a, "context"}] = wrote[a] / max(read[a], 1)
	}
	out := map[string]float64{}
	for k, n := range sums {
		if k.agent != "" && n != 0 {
			out[k.agent+" "+k.figure] = n
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(out) // a failure is missed by who reads
}
