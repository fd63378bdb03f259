package screen

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/term"
)

// guardName is the name by which this program is started to guard a terminal.
const guardName = "belay-terminal"

// guardTime is how long a guard may take to begin.
const guardTime = 2 * time.Second

// It is decided while packages are initialized whether the process is a guard: main may
// belong to any program.
var _ = guards()

// guards guards a terminal and doesn't return, if the process was started for that.
func guards() bool {
	if len(os.Args) != 1 || os.Args[0] != guardName {
		return false
	}
	if guard(os.Stdin, os.Stdout, os.NewFile(3, "in"), os.NewFile(4, "out")) != nil {
		os.Exit(1)
	}
	os.Exit(0)
	return true
}

// guard remembers how a terminal is set, says so, and waits. When the other process ends
// without a word, it gives the terminal back.
func guard(word io.Reader, ready io.Writer, in, out *os.File) error {
	cooked, err := term.GetState(int(in.Fd()))
	if err == nil {
		_, err = ready.Write([]byte{0})
	}
	if err != nil {
		return err
	}
	if said, err := io.ReadAll(word); err != nil || len(said) > 0 {
		return err
	}
	_, err = out.WriteString(eraseBelow + syncOff + modesOff)
	if set := term.Restore(int(in.Fd()), cooked); set != nil {
		err = set
	}
	return err
}

// guardian is a process that gives a terminal back when this one ends without having
// done so: a panic of any goroutine, or a signal that can't be caught. nil: there is none.
type guardian struct {
	cmd  *exec.Cmd
	word *os.File
	told *os.File
}

// newGuardian starts one for a terminal that wasn't changed yet.
func newGuardian(in, out *os.File) *guardian {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	heard, word, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer heard.Close()
	told, ready, err := os.Pipe()
	if err != nil {
		word.Close()
		return nil
	}
	defer ready.Close()
	g := &guardian{word: word, told: told, cmd: &exec.Cmd{Path: self, Args: []string{guardName}, Env: []string{}, Stdin: heard, Stdout: ready,
		ExtraFiles: []*os.File{in, out}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}} // what the terminal sends isn't for it
	if g.cmd.Start() != nil {
		word.Close()
		told.Close()
		return nil
	}
	return g
}

// ready waits until the guardian knows how the terminal is set. One that doesn't begin is
// dismissed: nothing is guarded then.
func (g *guardian) ready() *guardian {
	if g == nil {
		return nil
	}
	g.told.SetReadDeadline(time.Now().Add(guardTime)) //nolint:errcheck // then it is waited for
	if n, _ := g.told.Read(make([]byte, 1)); n != 1 {
		g.cmd.Process.Kill() //nolint:errcheck // it has ended
		g.dismiss()
		return nil
	}
	return g
}

// dismiss ends the guardian: the terminal was given back.
func (g *guardian) dismiss() {
	if g == nil {
		return
	}
	g.word.Write([]byte{0}) //nolint:errcheck // it has ended, or reads the end
	g.word.Close()
	g.told.Close()
	g.cmd.Wait() //nolint:errcheck // it has done what it could
}
