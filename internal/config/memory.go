package config

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/policy"
)

// memorySize is how much memory agents may declare together: a size, a percentage of the
// machine's, or both.
func memorySize(text string) (size int64, share int, err error) {
	for _, part := range strings.Split(text, ",") {
		digits, percent := strings.CutSuffix(strings.TrimSpace(part), "%")
		switch {
		case percent && share == 0:
			if share, err = strconv.Atoi(digits); err != nil || share < 1 || share > 100 {
				return 0, 0, fmt.Errorf("%q is no percentage from 1 to 100", part)
			}
		case size == 0 && !percent:
			if size, err = agentfile.Size(part); err != nil {
				return 0, 0, err
			}
		default:
			return 0, 0, errors.New("it names two sizes, or two percentages")
		}
	}
	return size, share, nil
}

func (p *parser) memory(v given) (int64, int) {
	size, share, err := memorySize(v.text)
	if err != nil {
		p.bad(belay.CodeUsage, p.flag()+"=8GB, or 50%", "%v", err)
	}
	return size, share
}

func memoryText(l belay.AgentLimits) string {
	var parts []string
	if l.Memory > 0 {
		parts = append(parts, policy.SizeText(l.Memory))
	}
	if l.MemoryShare > 0 {
		parts = append(parts, fmt.Sprint(l.MemoryShare, "%"))
	}
	return strings.Join(parts, ",")
}

// leastMemory is the smaller one of two limits, of a size and of a percentage; empty: that
// is what there is.
func leastMemory(v, have string) string {
	size, share, err := memorySize(v)
	if err != nil {
		return ""
	}
	wasSize, wasShare, err := memorySize(cmp.Or(have, fmt.Sprint(belay.DefaultMemoryShare, "%")))
	if err != nil {
		return v
	}
	l, was := belay.AgentLimits{Memory: size, MemoryShare: share}, belay.AgentLimits{Memory: wasSize, MemoryShare: wasShare}
	if l.Memory == 0 || was.Memory > 0 && was.Memory < l.Memory {
		l.Memory = was.Memory
	}
	if l.MemoryShare == 0 || was.MemoryShare > 0 && was.MemoryShare < l.MemoryShare {
		l.MemoryShare = was.MemoryShare
	}
	if l == was {
		return ""
	}
	return memoryText(l)
}
