package rulefile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// boundaryForm is the YAML of a boundary that people declare.
type boundaryForm struct {
	Base    string            `yaml:"base"`
	Write   words             `yaml:"write"`
	Read    words             `yaml:"read"`
	Network string            `yaml:"network"`
	Hosts   words             `yaml:"hosts"`
	Least   string            `yaml:"least"`
	Limits  map[string]string `yaml:"limits"`
}

// boundaryName is what a boundary may be called.
var boundaryName = match.Lazy(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// maxBoundaries is how many boundaries one file declares.
const maxBoundaries = 100

// boundaries reads what a file declares. Those of an untrusted file don't count:
// it could redefine a name that others use.
func (r *reading) boundaries(f *form) error {
	if len(f.Boundaries) > maxBoundaries {
		return r.Fail([]any{"boundaries"}, "there are %d boundaries; %d are the most", len(f.Boundaries), maxBoundaries)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Boundaries)) {
		b, err := r.boundary(name, f.Boundaries[name])
		if err != nil {
			return err
		}
		if r.narrows {
			r.ignore("boundary "+name, "boundaries", name)
			continue
		}
		if slices.ContainsFunc(r.l.doc.Boundaries, func(o policy.Boundary) bool { return o.Name == name && o.Tier == r.tier }) {
			return r.miss("two boundaries have the name "+name, "rename one of them", "boundaries", name)
		}
		r.l.doc.Boundaries = append(r.l.doc.Boundaries, b)
	}
	return nil
}

// miss is an error about a boundary, with its place.
func (r *reading) miss(what, try string, path ...any) error {
	e := r.Fail(path, "%s", what)
	e.Code = belay.CodeBadBoundary
	return e.WithHint("%s", try)
}

func (r *reading) boundary(name string, f boundaryForm) (b policy.Boundary, err error) {
	in := []any{"boundaries", name}
	switch {
	case slices.Contains(policy.BuiltinBoundaries, name):
		return b, r.miss("the boundary "+name+" is built in", "give yours another name", in...)
	case !boundaryName.Match(name):
		return b, r.miss(fmt.Sprintf("%q is no name for a boundary", name), "lower case letters, digits, . _ and -, at most 64", in...)
	case !slices.Contains([]string{"", belay.BoundaryReadOnly, belay.BoundaryWorkspace}, f.Base):
		return b, r.miss(fmt.Sprintf("base %q doesn't exist", f.Base), "read-only or workspace-write", append(in, "base")...)
	}
	b = policy.Boundary{Base: f.Base, Tier: r.tier, Where: r.At(in...), Boundary: belay.Boundary{Name: name, Write: f.Write, Read: f.Read, Network: f.Network, Hosts: f.Hosts, Least: belay.Level(f.Least)}}
	if len(f.Hosts) > 0 && f.Network == "" {
		b.Network = belay.NetworkHosts
	}
	b.Limits = belay.DefaultProcessLimits
	for _, limit := range slices.Sorted(maps.Keys(f.Limits)) {
		if err := setLimit(&b.Limits, limit, f.Limits[limit]); err != nil {
			return b, r.miss(err.Error(), "memory: 2GiB, cpu: 10m, processes: 256; docs/policy.md lists them", append(in, "limits", limit)...)
		}
	}
	if err := b.Check(); err != nil {
		return b, r.miss(err.Error(), cmp.Or(hintOf(err), hint), in...)
	}
	return b, nil
}

func hintOf(err error) string {
	if e, ok := err.(*belay.Error); ok { //nolint:errorlint // Check makes it
		return e.Hint
	}
	return ""
}

// lifted is how a file removes a default limit.
const lifted = "none"

// setLimit sets a limit by its name in files.
func setLimit(l *belay.ProcessLimits, name, text string) (err error) {
	share, ofMachine := strings.CutSuffix(text, "%")
	switch name {
	case "memory":
		switch l.MemoryShare = 0; {
		case text == lifted:
		case ofMachine:
			l.MemoryShare, err = count(share)
		default:
			if l.Memory, err = size(text); err != nil {
				err = fmt.Errorf("%w; or a share of the machine's memory such as 50%%; or none", err)
			}
		}
	case "file_size":
		l.FileSize, err = size(text)
	case "output":
		l.Output, err = size(text)
	case "disk":
		l.Disk, err = size(text)
	case "cpu":
		l.CPU, err = span(text)
	case "total_cpu":
		l.TotalCPU, err = span(text)
	case "total_written":
		l.TotalWritten, err = size(text)
	case "total_time":
		l.TotalTime, err = span(text)
	case "session_cpu":
		l.SessionCPU, err = span(text)
	case "session_written":
		l.SessionWritten, err = size(text)
	case "session_time":
		l.SessionTime, err = span(text)
	case "wall":
		l.Wall, err = span(text)
	case "cpu_quota":
		l.CPUQuota, err = count(share)
	case "processes":
		if l.Processes = 0; text != lifted {
			if l.Processes, err = count(text); err != nil {
				err = fmt.Errorf("%w, and not none", err)
			}
		}
	case "open_files":
		l.OpenFiles, err = count(text)
	default:
		err = fmt.Errorf("there is no limit %q", name)
	}
	return err
}

// size is bytes, written as 1048576, 512KiB, 64MiB or 2GiB.
func size(text string) (int64, error) {
	unit := int64(1)
	digits := text
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if d, ok := strings.CutSuffix(text, suffix); ok {
			unit, digits = 1<<(10*(i+1)), d
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size: a number of bytes above 0, or with KiB, MiB, GiB, TiB", text)
	}
	return n * unit, nil
}

func span(text string) (belay.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no length of time such as 90s, 10m or 2h", text)
	}
	return belay.Duration(d), nil
}

func count(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%q is no number above 0", text)
	}
	return n, nil
}

// bounded takes a rule of an untrusted file: its boundary counts where it
// narrows, if other files know it.
func (r *reading) bounded(rule *policy.Rule, f *form, i int) {
	if !r.narrows || rule.Boundary == "" {
		return
	}
	rule.Narrows = true
	if _, own := f.Boundaries[rule.Boundary]; own {
		rule.Boundary = ""
		r.ignore("boundary of rule "+rule.ID, "rules", i, "boundary")
	}
}

// known holds the boundaries that rules name against those there are.
func (l *Layers) known(s *policy.Set) error {
	all := s.Boundaries()
	for _, rule := range l.doc.Rules {
		if rule.Boundary == "" || slices.Contains(all, rule.Boundary) {
			continue
		}
		return belay.Errorf(belay.CodeBadBoundary, "rule %s: there is no boundary %q", rule.ID, rule.Boundary).At(rule.Where).
			WithHint("the boundaries are %s; boundaries: of the file declares more", strings.Join(all, ", "))
	}
	return nil
}
