//go:build unix

package file

import (
	"bytes"

	"github.com/belay-run/belay/internal/tool"
)

// binary is the problem of a file that isn't UTF-8 text; b is from its start
// or from where it stops being text.
func (p *place) binary(b []byte) error {
	return tool.Failf(tool.Denied, CodeBinary, "%s is not UTF-8 text: %s of %s", show(p.name), TypeOf(b), size(p.info.Size())).
		WithHint("read shows text, pictures, PDF and notebooks; use a program that understands the format")
}

// TypeOf names the commonest formats by how they begin.
func TypeOf(b []byte) string {
	for _, m := range [...]struct{ magic, name string }{
		{"\x7fELF", "a program (ELF)"}, {"MZ", "a program (PE)"}, {"\xcf\xfa\xed\xfe", "a program (Mach-O)"},
		{"\x89PNG", "a PNG image"}, {"\xff\xd8\xff", "a JPEG image"}, {"GIF8", "a GIF image"}, {"RIFF", "RIFF media"},
		{"%PDF", "a PDF document"}, {"PK\x03\x04", "a zip archive"}, {"\x1f\x8b", "gzip data"}, {"\xfd7zXZ", "xz data"},
		{"\x28\xb5\x2f\xfd", "zstd data"}, {"BZh", "bzip2 data"}, {"SQLite format 3", "an SQLite database"},
		{"\xff\xfe", "UTF-16 text"}, {"\xfe\xff", "UTF-16 text"}, {"\x00asm", "WebAssembly"}, {"\xca\xfe\xba\xbe", "Java or Mach-O code"},
		{"OggS", "Ogg media"}, {"ID3", "MP3 audio"}, {"wOFF", "a web font"}, {"wOF2", "a web font"},
	} {
		if bytes.HasPrefix(b, []byte(m.magic)) {
			return m.name
		}
	}
	return "binary data"
}
