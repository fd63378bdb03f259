// Package pages looks after the pages of memory that the program's own file takes.
package pages

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// Forget gives the system back the pages of the program's file that this process
// has looked at so far: code and tables, which are never written. What is used
// again comes back by itself, sixteen pages at once, for that is how the system
// fetches them. The file stays in the system's memory, for all processes; but
// its pages no longer count as this one's, and may be used for something else.
//
// It is for moments after which a process does something else than before: its
// packages have begun, its first request is on its way. It takes a fifth of a
// millisecond, and about a microsecond for each sixteen pages that come back.
//
// Nothing may have been written into such a page, for it would be lost. So a
// process that is traced keeps all, because a debugger's breakpoints lie in them;
// so does a program that is moved to another address when it is loaded; and
// where a system doesn't say what a process is nothing happens.
func Forget() {
	if traced() {
		return
	}
	for _, r := range fixed() {
		unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED) //nolint:errcheck // what stays costs memory only
	}
}

// traced reports whether a debugger is at work, or might be.
func traced() bool {
	status := begin("/proc/self/status", make([]byte, 512))
	_, rest, ok := bytes.Cut(status, []byte("\nTracerPid:\t"))
	return !ok || !bytes.HasPrefix(rest, []byte("0\n"))
}

// begin reads how a file begins; nil if it can't. It costs three calls of the
// system, where a file of package os costs a dozen.
func begin(file string, into []byte) []byte {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	n, err := unix.Read(fd, into)
	if err != nil {
		return nil
	}
	return into[:n]
}

// region is a range of addresses: pages that have nothing else in them.
type region struct{ start, end uintptr }

// fixed are the regions that nobody writes, as the program's file says.
var fixed = sync.OnceValue(func() []region {
	return readOnly(begin("/proc/self/exe", make([]byte, 4096)), uintptr(unix.Getpagesize()))
})

// readOnly are the regions of a program that lie in memory where its file says
// and are never written. head is how the file begins.
func readOnly(head []byte, page uintptr) (all []region) {
	var h elf.Header64
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) || len(head) <= elf.EI_CLASS || elf.Class(head[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return nil
	}
	if _, err := binary.Decode(head, binary.NativeEndian, &h); err != nil || elf.Type(h.Type) != elf.ET_EXEC {
		return nil
	}
	for i := range uint64(h.Phnum) {
		var p elf.Prog64
		at := h.Phoff + i*uint64(h.Phentsize)
		if at > uint64(len(head)) {
			return nil
		}
		if _, err := binary.Decode(head[at:], binary.NativeEndian, &p); err != nil {
			return nil
		}
		if elf.ProgType(p.Type) != elf.PT_LOAD || elf.ProgFlag(p.Flags)&elf.PF_W != 0 || p.Filesz != p.Memsz {
			continue
		}
		if start, end := (uintptr(p.Vaddr)+page-1)&^(page-1), uintptr(p.Vaddr+p.Memsz)&^(page-1); start < end {
			all = append(all, region{start, end})
		}
	}
	return all
}
