package process

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// ProcessTable is what the system says of all its processes at one moment.
type ProcessTable struct {
	procs    map[int]proc
	children map[int][]int
}

type proc struct {
	start string
	cpu   time.Duration
	bytes int64
}

// tick is the unit of times in stat lines: the kernel shows them in hundredths
// of a second whatever it counts in.
const tick = 10 * time.Millisecond

// ReadProcessTable reads them all.
func ReadProcessTable() ProcessTable {
	l := ProcessTable{procs: map[int]proc{}, children: map[int][]int{}}
	dir, err := os.Open("/proc")
	if err != nil {
		return l
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read is better than nothing
	page := int64(os.Getpagesize())
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has just ended
		}
		state, start, ok := parseStat(b)
		if !ok || state == 'Z' || state == 'X' {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) < 22 {
			continue
		}
		p := proc{start: start}
		for _, field := range f[11:15] { // its own times and those of children that ended
			n, _ := strconv.ParseInt(field, 10, 64)
			p.cpu += time.Duration(n) * tick
		}
		pages, _ := strconv.ParseInt(f[21], 10, 64)
		p.bytes = pages * page
		parent, _ := strconv.Atoi(f[1])
		l.procs[pid] = p
		l.children[parent] = append(l.children[parent], pid)
	}
	return l
}

// Usage is what a process and all below it take.
type Usage struct {
	Processes int
	CPU       time.Duration // so far, with those below it that have ended
	Bytes     int64         // of memory that they have now; shared pages count for each
}

// Tree is the use of a process and all below it; false: it isn't there. An empty
// start means unknown.
func (l ProcessTable) Tree(pid int, start string) (u Usage, there bool) {
	p, ok := l.procs[pid]
	if !ok || start != "" && p.start != start {
		return u, false
	}
	u = Usage{Processes: 1, CPU: p.cpu, Bytes: p.bytes}
	for _, child := range l.children[pid] {
		if below, ok := l.Tree(child, ""); ok {
			u.Processes += below.Processes
			u.CPU += below.CPU
			u.Bytes += below.Bytes
		}
	}
	return u, true
}
