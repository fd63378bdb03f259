// Command agents counts what belay agents stats says, from the output of belay events --json.
// It is a module of its own, of the standard library alone.
package main

import (
	"encoding/json"
	"os"
	"slices"
)

// stats is what is read of a turn's end; other facts have none of an agent.
type stats struct {
	Agent, Outcome              string
	Retries, GateReds, ActiveMs float64
	Steps                       float64
	Usage                       usage
	Cost                        struct{ MicroUsd float64 }
	Below                       struct { // by agents that it started, which count for themselves
		Usage    usage
		MicroUsd float64
	}
}

type usage struct {
	Input, Output float64
	Reported      bool
}

func main() {
	sums, took := map[string]float64{}, map[string][]float64{}
	for in := json.NewDecoder(os.Stdin); in.More(); {
		var fact struct{ Payload struct{ Stats stats } }
		_ = in.Decode(&fact) // payloads of other types have other fields
		if s := fact.Payload.Stats; s.Agent != "" {
			s.Usage.Input, s.Usage.Output = s.Usage.Input-s.Below.Usage.Input, s.Usage.Output-s.Below.Usage.Output
			s.Cost.MicroUsd -= s.Below.MicroUsd
			if s.Steps > 0 && !s.Usage.Reported {
				sums[s.Agent+" unknown"]++
			}
			for figure, n := range map[string]float64{"runs": 1, s.Outcome: 1, "tokens": s.Usage.Input + s.Usage.Output, "read": s.Usage.Input, "wrote": s.Usage.Output, "cost": s.Cost.MicroUsd, "retries": s.Retries, "gateReds": s.GateReds} {
				sums[s.Agent+" "+figure] += n
			}
			took[s.Agent] = append(took[s.Agent], s.ActiveMs)
		}
	}
	for agent, ms := range took {
		slices.Sort(ms)
		sums[agent+" p50"], sums[agent+" p95"] = ms[(len(ms)*50+99)/100-1], ms[(len(ms)*95+99)/100-1]
		sums[agent+" context"] = sums[agent+" wrote"] / max(sums[agent+" read"], 1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(sums)
}
