package layout

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The write-ahead log's file: a header, then frames. Each frame is a page with
// a header of its own. A generation of the log has two salts; when the log is
// written anew from its start it gets others, and what older frames are left
// behind the new ones count no more.
const (
	HeaderBytes = 32
	FrameBytes  = 24         // of a frame's header; the page follows
	walMagic    = 0x377f0682 // the lowest bit says that checksums are over big-endian words
	walVersion  = 3007000
)

// Log is what a log holds.
type Log struct {
	Frames   int64 // up to the last commit: SQLite sees these
	Salts    [8]byte
	First    []byte // page 1 as of the last commit; nil when the log doesn't have it
	Problems []Problem
}

// walScan reads a log as SQLite does, and then further. SQLite takes frames up
// to the first whose checksum is wrong and says nothing about those behind it,
// so a flipped bit in the middle makes every later commit disappear.
type walScan struct {
	Log
	name  string
	order binary.ByteOrder
	page  int
	sum   [2]uint32 // of everything up to the last frame that counts

	waiting []byte // page 1 in a transaction without a commit so far
	end     int64  // the first frame that doesn't count, 0 while all do
	why     string // end is bad; empty when it may be of an earlier generation
	later   int64  // frames of this generation behind end
	commit  bool   // one of them, or end itself, ends a transaction
	synced  bool   // and something follows it: that transaction was on the disk
}

// ScanLog reads a log to its end. The error is the reader's own.
func ScanLog(r io.Reader, name string) (Log, error) {
	s := walScan{name: name}
	header := make([]byte, HeaderBytes)
	n, err := io.ReadFull(r, header)
	switch {
	case err == io.EOF:
		return s.Log, nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return s.Log, err
	}
	if what := s.header(header[:n]); what != "" {
		s.problem(name+": header, byte 0", what+": SQLite would take nothing of the log")
		_, err = io.Copy(io.Discard, r)
		return s.Log, err
	}
	frame := make([]byte, FrameBytes+s.page)
	for number := int64(1); ; number++ {
		switch n, err = io.ReadFull(r, frame); {
		case err == nil:
			s.frame(number, frame)
			continue
		case errors.Is(err, io.ErrUnexpectedEOF):
			s.part(number, frame[:n])
		case err != io.EOF:
			return s.Log, err
		}
		s.finish()
		return s.Log, nil
	}
}

func (s *walScan) problem(place, what string) {
	s.Problems = append(s.Problems, Problem{place, what})
}

func (s *walScan) header(b []byte) (what string) {
	if len(b) < HeaderBytes {
		return fmt.Sprintf("the log has %d bytes, less than its header", len(b))
	}
	be := binary.BigEndian
	magic, page := be.Uint32(b), be.Uint32(b[8:])
	s.order = binary.LittleEndian
	if magic&1 != 0 {
		s.order = be
	}
	switch {
	case magic&^1 != walMagic || be.Uint32(b[4:]) != walVersion:
		return "this is no write-ahead log"
	case page < 512 || page > 1<<16 || page&(page-1) != 0:
		return "the page size is none"
	}
	s.page = int(page)
	copy(s.Salts[:], b[16:24])
	s.sum = walSum(s.order, s.sum, b[:24])
	if s.sum != [2]uint32{be.Uint32(b[24:]), be.Uint32(b[28:])} {
		return "the header's checksum is wrong"
	}
	return ""
}

// walSum continues with a checksum over b, whose length is a multiple of eight.
func walSum(order binary.ByteOrder, sum [2]uint32, b []byte) [2]uint32 {
	for ; len(b) >= 8; b = b[8:] {
		sum[0] += order.Uint32(b) + sum[1]
		sum[1] += order.Uint32(b[4:]) + sum[0]
	}
	return sum
}

func (s *walScan) frame(number int64, b []byte) {
	be := binary.BigEndian
	page, pages := be.Uint32(b), be.Uint32(b[4:])
	current := bytes.Equal(b[8:16], s.Salts[:])
	if s.end != 0 {
		s.behind(current, pages)
		return
	}
	sum := walSum(s.order, walSum(s.order, s.sum, b[:8]), b[FrameBytes:])
	follows := page != 0 && sum == [2]uint32{be.Uint32(b[16:]), be.Uint32(b[20:])}
	switch {
	case current && follows:
		s.sum = sum
		if page == 1 {
			s.waiting = append(s.waiting[:0], b[FrameBytes:]...)
		}
		if pages == 0 {
			return
		}
		s.Frames = number
		if len(s.waiting) > 0 {
			s.First, s.waiting = s.waiting, nil
		}
		return
	case follows:
		s.why = "its salts were changed" // no checksum covers them
	case current:
		s.why = "its checksum is wrong"
	case allZero(b[8:16]):
		s.why = "it was never written"
	}
	s.end, s.commit = number, (current || follows) && pages != 0
}

// behind looks at a frame after the last that counts. Frames of this
// generation can't be there unless the one at the end was of it too. When
// something follows a commit, that commit had been synced.
func (s *walScan) behind(current bool, pages uint32) {
	if !current {
		return
	}
	s.later++
	s.synced = s.synced || s.commit
	s.commit = s.commit || pages != 0
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// part looks at a last frame that isn't whole.
func (s *walScan) part(number int64, b []byte) {
	if s.end != 0 || len(b) >= 16 && !bytes.Equal(b[8:16], s.Salts[:]) && !allZero(b[8:16]) {
		return
	}
	s.end, s.why = number, fmt.Sprintf("it has %d of %d bytes", len(b), FrameBytes+s.page)
}

// finish tells what the first frame that doesn't count means. What wasn't
// synced may be torn by a power failure, which in the last transaction
// can't be distinguished from damage. Without a whole frame that ends it, it never was one.
func (s *walScan) finish() {
	if s.why == "" && s.later > 0 {
		s.why = "it is of another log"
	}
	if s.why == "" {
		return
	}
	offset := HeaderBytes + (s.end-1)*int64(FrameBytes+s.page)
	what := s.why
	switch {
	case s.synced:
		what += fmt.Sprintf(": SQLite would leave out %d frames from here on", s.later+1)
	case s.commit:
		what = tornTail + what
	default:
		what = unfinishedTail + what
	}
	s.problem(fmt.Sprintf("%s: frame %d, byte %d", s.name, s.end, offset), what)
}

// Problem is something that isn't as it was written.
type Problem struct {
	Place string `json:"place"` // a file with frame or byte, a fact, a row
	What  string `json:"what"`
}

// String implements fmt.Stringer.
func (p Problem) String() string { return p.Place + ": " + p.What }

// Tail reports whether only the log's last transaction is concerned: a crash or a
// full disk in the middle of a write leaves it so, and so does damage.
// Everything before it is there. Heads that were kept tell the two apart.
func (p Problem) Tail() bool { return strings.HasPrefix(p.What, tornTail) }

// Unfinished reports whether what is behind the last commit was being written when its
// process ended, or when the disk was full. Nothing that was committed is missing.
func (p Problem) Unfinished() bool { return strings.HasPrefix(p.What, unfinishedTail) }

const (
	tornTail       = "tail: torn or damaged: "
	unfinishedTail = "tail: a write that wasn't finished, behind the last commit: "
)
