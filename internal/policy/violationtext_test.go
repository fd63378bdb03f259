package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// Guarantee: G70.
func TestWhatABoundaryStoppedIsReadFromWhatProgramsSay(t *testing.T) {
	none := belay.Boundary{Name: belay.BoundaryWorkspace, Network: belay.NetworkNone, Write: []string{"/srv/cache"}, Read: []string{"/data"}}
	there := Seen{Exists: func(p string) bool {
		return slices.Contains([]string{"/home/ann/notes", "/home/ann", "/etc", "/root", "/root/x", "/var/lib/private"}, p)
	}, Private: []string{"/home", "/root"}}
	for _, c := range []struct{ said, op, target string }{
		{"sh: 1: cannot create /srv/out/a: Read-only file system", "write", "/srv/out/a"},
		{"sh: 1: cannot create /srv/out/a: Permission denied", "write", "/srv/out/a"},
		{"bash: line 1: /etc/x: Permission denied", "", ""},
		{"/bin/sh: 1: cannot create /etc/x: Permission denied", "write", "/etc/x"},
		{"/bin/sh: 1: cannot create /etc/x: Read-only file system", "write", "/etc/x"},
		{"/bin/bash: line 1: /etc/x: Permission denied", "", ""},
		{"/usr/bin/bash: line 12: /etc/x: Read-only file system", "write", "/etc/x"},
		{"/usr/bin/bash: /etc/x: Permission denied", "", ""},
		{"/opt/jobs/run.sh: 3: cannot create /etc/x: Permission denied", "write", "/etc/x"},
		{"/opt/jobs/run.sh: 3: /opt/jobs/run.sh: cannot create /etc/x: Permission denied", "write", "/etc/x"},
		{"/opt/jobs/run.sh: line 3: /etc/x: Permission denied", "", ""},
		{"/bin/sh: can't create /etc/x: Permission denied", "write", "/etc/x"}, // busybox
		{"/bin/zsh:1: permission denied: /etc/x", "", ""},
		{"zsh:1: permission denied: /etc/x", "", ""},
		{"/usr/bin/tee: /etc/x: Permission denied", "write", "/etc/x"},
		{"/bin/tar: /etc/x.tar: Cannot open: Permission denied", "", ""},
		{"/etc/x.tar: Cannot open: Permission denied", "", ""},
		{"/usr/bin/ld: cannot open output file /etc/x: Permission denied", "write", "/etc/x"},
		{"/bin/sed: couldn't open temporary file /etc/sedAb3: Permission denied", "write", "/etc/sedAb3"},
		{"/bin/cp: cannot create regular file '/etc/x': Read-only file system", "write", "/etc/x"},
		{"mv: cannot move 'a' to '/etc/a': Read-only file system", "write", "/etc/a"},
		{"/usr/lib/ruby/3.1/x.rb:12:in `initialize': Permission denied @ rb_sysopen - /etc/x (Errno::EACCES)", "", ""},
		{"java.io.FileNotFoundException: /etc/x (Permission denied)", "", ""},
		{"npm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules/x'", "write", "/usr/lib/node_modules/x"},
		{"/usr/bin/git: fatal: could not create work tree dir '/opt/x': Permission denied", "write", "/opt/x"},
		{"/etc/x: Permission denied", "", ""},
		{"/bin/sh: 1: cannot open /root/x: Permission denied", "read", "/root/x"},
		{"/bin/sh: 1: cannot create a: Permission denied", "", ""}, // the boundary allows that
		{"touch: cannot touch '/etc/a b': Read-only file system", "write", "/etc/a b"},
		{"mkdir: cannot create directory ‘/opt/x’: Read-only file system", "write", "/opt/x"},
		{"touch: cannot touch '../up': Read-only file system", "write", "/home/ann/up"},
		{"cat: /root/x: Permission denied", "read", "/root/x"},
		{"ls: cannot open directory '/root': Permission denied", "read", "/root"},
		{"PermissionError: [Errno 13] Permission denied: '/srv/o.txt'", "", ""},
		{"OSError: [Errno 30] Read-only file system: '/srv/o.txt'", "write", "/srv/o.txt"},
		{"panic: open /srv/o.txt: read-only file system", "write", "/srv/o.txt"},
		{"Error: EROFS: read-only file system, open '/srv/o.txt'", "write", "/srv/o.txt"},
		{"Error: EACCES: permission denied, scandir '/root'", "read", "/root"},
		{"error: could not lock config file /home/bob/.gitconfig: Read-only file system", "write", "/home/bob/.gitconfig"},
		{"touch: cannot touch '.git/hooks/x': Read-only file system", "write", "/home/ann/ws/.git/hooks/x"},
		{"sh: 1: cannot create AGENTS.md: Read-only file system", "write", "/home/ann/ws/AGENTS.md"},
		{"sh: 1: cannot create .vscode/tasks.json: Read-only file system", "write", "/home/ann/ws/.vscode/tasks.json"},
		{"error: could not write config file .git/config: Device or resource busy", "write", "/home/ann/ws/.git/config"},
		{"mv: cannot move '.git' to 'moved': Device or resource busy", "write", "/home/ann/ws/.git"},
		{"ln: cannot remove 'AGENTS.md': Device or resource busy", "write", "/home/ann/ws/AGENTS.md"},
		{"umount: /srv/disk: device or resource busy", "", ""},
		{"rm: cannot remove 'busy': Device or resource busy", "", ""},
		{"curl: (6) Could not resolve host: example.com", "connect", "example.com"},
		{"npm error request to https://x failed, reason: getaddrinfo EAI_AGAIN registry.test", "connect", "registry.test"},
		{"Get \"https://p.test/x\": dial tcp: lookup p.test on 1.1.1.1:53: dial udp 1.1.1.1:53: connect: network is unreachable", "connect", "p.test"},
		{"ping: connect: Network is unreachable", "connect", ""},
		{"fine\nsh: 1: cannot create /srv/out/a: Permission denied\nmore\n", "write", "/srv/out/a"},

		{"cat: /home/ann/notes: No such file or directory", "read", "/home/ann/notes"},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/home/ann/notes'", "read", "/home/ann/notes"},
		{"sh: 1: cannot create /home/ann/new: Directory nonexistent", "write", "/home/ann/new"},
		{"touch: cannot touch '/home/ann/new': No such file or directory", "write", "/home/ann/new"},
		{"cat: /home/ann/nothing: No such file or directory", "", ""},
		{"touch: cannot touch '/home/ann/no/where': No such file or directory", "", ""},

		{"/bin/bash: line 1: /etc/x: Read-only file system", "write", "/etc/x"},
		{"wc: ./.env: Permission denied", "", ""}, // a secret that is covered, or a file that nobody may read
		{"error: open(\"deploy.key\"): Permission denied", "", ""},
		{"find: './locked': Permission denied", "", ""},
		{"find: '/var/lib/private': Permission denied", "", ""}, // outside it is so as well
		{"Cannot open netlink socket: Operation not permitted", "", ""},
		{"ls: cannot open directory './locked': Permission denied", "", ""},

		{"all is well", "", ""},
		{"touch: cannot touch '/home/ann/ws/a': Permission denied", "", ""}, // the boundary allows that
		{"touch: cannot touch '/srv/cache/a': Permission denied", "", ""},
		{"cat: /data/x: Permission denied", "", ""},
		{"cat: sub/x: Permission denied", "", ""},
		{"sh: 1: cannot create /dev/x: Permission denied", "", ""},
		{strings.Repeat("x", maxLine) + " /etc/x: Permission denied", "", ""},
	} {
		op, target, ok := ParseViolation(c.said, "/home/ann/ws", "/home/ann/ws", none, there)
		if op != c.op || target != c.target || ok != (c.op != "") {
			t.Errorf("%s: %v %s %q, want %s %q", c.said, ok, op, target, c.op, c.target)
		}
	}
	readOnly := belay.Boundary{Name: belay.BoundaryReadOnly, Network: belay.NetworkFull}
	if op, target, _ := ParseViolation("touch: cannot touch 'a': Read-only file system", "/ws", "/ws/sub", readOnly, there); op != OpWrite || target != "/ws/sub/a" {
		t.Errorf("in a read-only workspace: %s %s", op, target)
	}
	if op, target, _ := ParseViolation("/bin/sh: 1: cannot create a: Permission denied", "/ws", "/ws/sub", readOnly, there); op != OpWrite || target != "/ws/sub/a" {
		t.Errorf("in a read-only workspace at L2: %s %s", op, target)
	}
	if _, _, ok := ParseViolation("curl: (6) Could not resolve host: example.com", "/ws", "/ws", readOnly, there); ok {
		t.Error("the network is allowed, so the boundary didn't stop it")
	}
	if _, _, ok := ParseViolation("cat: /root/x: Permission denied", "/ws", "/ws", belay.Boundary{Name: belay.BoundaryFull}, there); ok {
		t.Error("nothing is stopped by boundary full")
	}
}

// Guarantee: T56.
func TestALimitThatAProgramMetIsReadFromWhatItSays(t *testing.T) {
	all := belay.ProcessLimits{OpenFiles: 64, FileSize: 1 << 20, Disk: 1 << 20, Memory: 1 << 20, Processes: 64}
	for said, want := range map[string]string{
		"OSError: [Errno 24] Too many open files: '/dev/null'":            belay.LimitOpenFiles,
		"Error: EMFILE: too many open files, open 'x'":                    belay.LimitOpenFiles,
		"head: error writing 'standard output': File too large":           belay.LimitFileSize,
		"File size limit exceeded (core dumped)":                          belay.LimitFileSize,
		"head: error writing 'standard output': No space left on device":  belay.LimitDisk,
		"Traceback (most recent call last):\nMemoryError":                 belay.LimitMemory,
		"fatal error: runtime: out of memory":                             belay.LimitMemory,
		"FATAL ERROR: Reached heap limit - JavaScript heap out of memory": belay.LimitMemory,
		"sh: 1: Cannot fork":                                           belay.LimitProcesses,
		"bash: fork: Resource temporarily unavailable":                 belay.LimitProcesses,
		"RuntimeError: can't start new thread":                         belay.LimitProcesses,
		"cat: x: Too many open files\nsh: 1: Cannot fork":              belay.LimitProcesses, // the last one counts
		"BlockingIOError: [Errno 11] Resource temporarily unavailable": belay.LimitProcesses,
		"flock: cannot lock: Resource temporarily unavailable":         "", // nothing was to be started
		"all is well": "",
	} {
		b := belay.Boundary{Name: belay.BoundaryWorkspace, Limits: all}
		op, target, ok := ParseViolation(said, "/ws", "/ws", b, Seen{Exists: func(string) bool { return false }})
		if ok != (want != "") || target != want || ok && op != OpLimit {
			t.Errorf("%s: %s %q %v, want %q", said, op, target, ok, want)
		}
		b.Limits = belay.ProcessLimits{} // what the boundary doesn't limit it didn't stop
		if _, target, ok := ParseViolation(said, "/ws", "/ws", b, Seen{Exists: func(string) bool { return false }}); ok {
			t.Errorf("%s: %q without a limit", said, target)
		}
	}
}
