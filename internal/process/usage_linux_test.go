package process_test

import (
	"os"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/process"
)

func TestWhatATreeUses(t *testing.T) {
	h := newTether(t)
	cmd := sh(`sleep 300 & (sleep 300; true) & i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo up >"` + h.path + `"; sleep 300`)
	p, err := process.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	h.line(t)
	use, there := process.ReadProcessTable().Tree(p.PID, p.Start)
	if !there || use.Processes < 4 || use.CPU < 10*time.Millisecond || use.Bytes < 1<<20 {
		t.Errorf("got %+v, %v", use, there)
	}
	if _, there := process.ReadProcessTable().Tree(p.PID, p.Start+"1"); there {
		t.Error("another start time is taken for this process")
	}
	p.Stop(process.Cancelled)
	<-p.Done()
	if e := p.Exit(); e.CPU < 10*time.Millisecond || e.Peak < 1<<18 {
		t.Errorf("the exit says %+v", e)
	}
	if _, there := process.ReadProcessTable().Tree(p.PID, p.Start); there {
		t.Error("it has ended and is there")
	}
	if use, there := process.ReadProcessTable().Tree(os.Getpid(), ""); !there || use.Bytes < 1<<20 {
		t.Errorf("this process uses %+v, %v", use, there)
	}
}
