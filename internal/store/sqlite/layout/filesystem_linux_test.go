package layout

import (
	"bufio"
	"strings"
	"testing"
)

func TestTheMountTableSaysWhichFuse(t *testing.T) {
	const table = "22 1 254:0 / / rw - ext4 /dev/vda rw\n36 35 0:52 / /mnt/my\\040files rw,noatime shared:1 - fuse.sshfs host:/ rw\n37 35 0:53 / /m rw - fuse.foo x rw\n"
	for minor, want := range map[uint32]string{52: "fuse.sshfs", 53: "fuse.foo", 54: "fuse"} {
		if got := mountType(bufio.NewScanner(strings.NewReader(table)), 0, minor); got != want {
			t.Errorf("0:%d: got %s, want %s", minor, got, want)
		}
	}
}
