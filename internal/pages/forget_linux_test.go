package pages

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/needs"
)

// of is what the system says of this process's pages in the regions, in KiB.
func of(t *testing.T, regions []region) (resident, written int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		at := regexp.MustCompile(`(?m)^0*` + strconv.FormatUint(uint64(r.start), 16) + `-[0-9a-f]+ r-[-x]p`).FindIndex(maps)
		if at == nil {
			t.Fatalf("no region that can't be written begins at %x:\n%s", r.start, maps)
		}
		resident += figure(t, maps[at[0]:], "Rss")
		written += figure(t, maps[at[0]:], "Anonymous")
	}
	return resident, written
}

func figure(t *testing.T, text []byte, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %s", name, text)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// forgotten is how much of the program's file is resident when all of it was
// looked at, and after it was forgotten.
func forgotten(t *testing.T) (before, after int) {
	t.Helper()
	regions := fixed()
	if len(regions) < 2 {
		t.Fatalf("the program has the regions %v; its code and its tables are two", regions)
	}
	for _, r := range regions {
		_, _, e := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_POPULATE_READ)
		needs.Facility(t, "populate", e == 0, "a kernel of 5.14 or later fetches pages when it is told to")
	}
	before, written := of(t, regions)
	if written != 0 {
		t.Errorf("%d KiB of the regions are written; they would be lost", written)
	}
	Forget()
	after, _ = of(t, regions)
	return before, after
}

func TestPagesOfTheFileAreGivenBack(t *testing.T) {
	before, after := forgotten(t)
	if os.Getenv("PAGES_TRACED") != "" {
		fmt.Printf("traced %d %d\n", before, after)
		return
	}
	if before == 0 || after > before*3/4 { // a test is small, and looking at it takes some of it
		t.Errorf("%d KiB of the program's file were resident, and %d after they were forgotten", before, after)
	}
}

// TestATracedProcessKeepsItsPages runs the test above under a tracer: what a
// debugger wrote into them must stay.
func TestATracedProcessKeepsItsPages(t *testing.T) {
	runtime.LockOSThread() // the thread that starts the process is its tracer
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPagesOfTheFileAreGivenBack$")
	cmd.Env = append(os.Environ(), "PAGES_TRACED=1")
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		needs.Facility(t, "ptrace", false, err.Error())
	}
	for {
		var s syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &s, syscall.WALL, nil); err != nil {
			t.Fatal(err)
		}
		if s.Exited() || s.Signaled() {
			break
		}
		sig := s.StopSignal()
		if sig == syscall.SIGTRAP {
			sig = 0
		}
		if err := syscall.PtraceCont(cmd.Process.Pid, int(sig)); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Wait() //nolint:errcheck // it was waited for above; this is for what it printed
	if strings.Contains(out.String(), "needs: populate") {
		needs.Facility(t, "populate", false, "the traced process says so")
	}
	var before, after int
	if _, err := fmt.Sscanf(out.String(), "traced %d %d", &before, &after); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if after != before {
		t.Errorf("%d KiB of the program's file were resident, and %d after a traced process forgot them", before, after)
	}
}

// program is how the file of one begins, with a region of each kind.
func program(t *testing.T, change func(h *elf.Header64, p []elf.Prog64)) []byte {
	t.Helper()
	h := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64)}, Type: uint16(elf.ET_EXEC), Phoff: 64, Phentsize: 56, Phnum: 4}
	p := []elf.Prog64{
		{Type: uint32(elf.PT_NOTE), Flags: uint32(elf.PF_R), Vaddr: 0x1000, Filesz: 0x1000, Memsz: 0x1000},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: 0x400000, Filesz: 0x10001, Memsz: 0x10001},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Vaddr: 0x411800, Filesz: 0x3000, Memsz: 0x3000},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Vaddr: 0x420000, Filesz: 0x1000, Memsz: 0x9000},
	}
	change(&h, p)
	var b bytes.Buffer
	for _, part := range []any{h, p} {
		if err := binary.Write(&b, binary.NativeEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestRegionsAreWholePagesThatNobodyWrites(t *testing.T) {
	whole := program(t, func(*elf.Header64, []elf.Prog64) {})
	const code, tables = "{400000 410000}", "{412000 414000}"
	for name, c := range map[string]struct {
		head []byte
		want string
	}{
		"as it is made":             {whole, "[" + code + " " + tables + "]"},
		"moved when it is loaded":   {program(t, func(h *elf.Header64, _ []elf.Prog64) { h.Type = uint16(elf.ET_DYN) }), "[]"},
		"of 32 bits":                {program(t, func(h *elf.Header64, _ []elf.Prog64) { h.Ident[4] = byte(elf.ELFCLASS32) }), "[]"},
		"tables that are written":   {program(t, func(_ *elf.Header64, p []elf.Prog64) { p[2].Flags |= uint32(elf.PF_W) }), "[" + code + "]"},
		"tables that begin as zero": {program(t, func(_ *elf.Header64, p []elf.Prog64) { p[2].Memsz++ }), "[" + code + "]"},
		"less than a page":          {program(t, func(_ *elf.Header64, p []elf.Prog64) { p[2].Filesz, p[2].Memsz = 0x900, 0x900 }), "[" + code + "]"},
		"cut off":                   {whole[:len(whole)-1], "[]"},
		"cut off in its head":       {whole[:40], "[]"},
		"regions beyond what is read": {program(t, func(h *elf.Header64, _ []elf.Prog64) {
			h.Phoff = 1 << 60
		}), "[]"},
		"another kind of file": {[]byte("#!/bin/sh\n"), "[]"},
		"nothing":              {nil, "[]"},
	} {
		if got := fmt.Sprintf("%x", readOnly(c.head, 4096)); got != c.want {
			t.Errorf("%s: the regions are %s, want %s", name, got, c.want)
		}
	}
}
