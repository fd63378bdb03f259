package layout

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FileSystem is the name of the file system that a directory is on, as the
// mount table has it; empty when that can't be found out.
func FileSystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return ""
	}
	if s.Type == unix.FUSE_SUPER_MAGIC {
		return mounted(dir) // the magic is the same for all of them, the table says which
	}
	return map[uint32]string{
		unix.NFS_SUPER_MAGIC:  "nfs",
		unix.SMB_SUPER_MAGIC:  "smb",
		0xff534d42:            "cifs",
		0xfe534d42:            "smb2",
		unix.V9FS_MAGIC:       "9p",
		unix.AFS_SUPER_MAGIC:  "afs",
		unix.AFS_FS_MAGIC:     "afs",
		unix.NCP_SUPER_MAGIC:  "ncpfs",
		unix.CODA_SUPER_MAGIC: "coda",
		0x00c36400:            "ceph",
	}[uint32(s.Type)]
}

// mounted is the type of the mount that a directory is on.
func mounted(dir string) string {
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return "fuse"
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "fuse"
	}
	defer f.Close()
	return mountType(bufio.NewScanner(f), unix.Major(s.Dev), unix.Minor(s.Dev))
}

// mountType reads lines such as
//
//	36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw
func mountType(lines *bufio.Scanner, major, minor uint32) string {
	want := strconv.FormatUint(uint64(major), 10) + ":" + strconv.FormatUint(uint64(minor), 10)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if ok && len(fields) > 2 && fields[2] == want {
			name, _, _ := strings.Cut(after, " ")
			return name
		}
	}
	return "fuse"
}
