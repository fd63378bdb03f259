package process

import (
	"os"
	"strconv"
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
	page := int64(os.Getpagesize())
	for pid := range pids() {
		f, err := stat(pid)
		if err != nil || hasEnded(f) {
			continue
		}
		p := proc{start: f[startField]}
		for _, field := range f[timesField : timesField+4] {
			n, _ := strconv.ParseInt(field, 10, 64)
			p.cpu += time.Duration(n) * tick
		}
		pages, _ := strconv.ParseInt(f[pagesField], 10, 64)
		p.bytes = pages * page
		parent, _ := strconv.Atoi(f[parentField])
		l.procs[pid] = p
		l.children[parent] = append(l.children[parent], pid)
	}
	return l
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
