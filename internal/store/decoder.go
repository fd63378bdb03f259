package store

import "encoding/binary"

// Decoder reads stored bytes part by part. What isn't there is nothing, and Whole
// tells of it at the end.
type Decoder struct {
	rest   []byte
	failed bool
}

// NewDecoder reads bytes from their beginning on.
func NewDecoder(b []byte) *Decoder { return &Decoder{rest: b} }

// More reports whether something is left to be read.
func (d *Decoder) More() bool { return !d.failed && len(d.rest) > 0 }

// Whole reports whether everything was there and nothing is left.
func (d *Decoder) Whole() bool { return !d.failed && len(d.rest) == 0 }

// Take reads n bytes.
func (d *Decoder) Take(n uint64) []byte {
	if d.failed = d.failed || n > uint64(len(d.rest)); d.failed {
		return nil
	}
	part := d.rest[:n]
	d.rest = d.rest[n:]
	return part
}

// Bytes reads a length and that many bytes.
func (d *Decoder) Bytes() []byte { return d.Take(d.Uvarint()) }

// Uvarint reads a number.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.number(n)
	return v
}

// Varint reads a number with a sign.
func (d *Decoder) Varint() int64 {
	v, n := binary.Varint(d.rest)
	d.number(n)
	return v
}

func (d *Decoder) number(size int) {
	d.failed = d.failed || size <= 0
	d.Take(uint64(max(size, 0)))
}
