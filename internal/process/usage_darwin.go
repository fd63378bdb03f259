package process

// ProcessTable is what the system says of all its processes at one moment. Here it says
// only whether they are there.
type ProcessTable struct{}

// ReadProcessTable reads them all.
func ReadProcessTable() ProcessTable { return ProcessTable{} }

// Tree is the use of a process and all below it; false: it isn't there. An empty
// start means unknown.
func (l ProcessTable) Tree(pid int, start string) (u Usage, there bool) {
	return Usage{Processes: 1}, Alive(pid, start)
}
