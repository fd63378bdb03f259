//go:build unix

package file_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

func TestPublish(t *testing.T) {
	for _, c := range []struct {
		name        string
		args        args
		file, media string
		content     string
	}{
		{"a file goes by its own name", args{"path": "out/report.md"}, "report.md", "text/markdown", "# R\n"},
		{"or by another", args{"path": "out/report.md", "name": "summary.txt", "description": "short"}, "summary.txt", "text/plain", "# R\n"},
		{"text needs a name", args{"text": "a,b\n", "name": "t.csv"}, "t.csv", "text/csv", "a,b\n"},
		{"empty text is content", args{"text": "", "name": "none.txt"}, "none.txt", "text/plain", ""},
		{"the media type may be given", args{"text": "x", "name": "x", "media": "Text/X-Thing"}, "x", "text/x-thing", "x"},
		{"bytes are bytes", args{"path": "bin"}, "bin", "application/octet-stream", "\x00\x01"},
		{"what reads as text is text", args{"path": "plain"}, "plain", "text/plain", "hi"},
	} {
		b := tooltest.NewBench(t)
		b.Put("out/report.md", "# R\n")
		b.Put("bin", "\x00\x01")
		b.Put("plain", "hi")
		r, err := b.Run(t.Context(), file.Publish(), c.args)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		p, ok := b.Sink.Facts()[0].(event.ArtifactChanged)
		if !ok || p.Kind != "artifact" || p.Op != "published" || p.Name != c.file || p.Version != "1" || p.After.Media != c.media || p.After.Digest != p.Digest {
			t.Errorf("%s: got %+v", c.name, p)
			continue
		}
		if kept, err := b.Sink.Kept(p.After.Digest); err != nil || string(kept) != c.content {
			t.Errorf("%s: kept %q, %v", c.name, kept, err)
		}
		if !strings.HasPrefix(r.Text, "published "+c.file+", version 1: ") || !strings.Contains(r.Text, string(p.Digest)) {
			t.Errorf("%s: says %q", c.name, r.Text)
		}
	}
}

// Guarantee: E31.
func TestVersionsCountUpAndTheSameIsNoNewOne(t *testing.T) {
	b := tooltest.NewBench(t)
	call := b.Call(args{"text": "two", "name": "a.txt"})
	call.Published = map[string]tool.Published{"a.txt": {Version: 4, Digest: belay.DigestOf([]byte("one"))}}
	r, err := file.Publish().Run(t.Context(), call)
	if err != nil || b.Sink.Facts()[0].(event.ArtifactChanged).Version != "5" {
		t.Errorf("got %+v, %v", b.Sink.Facts(), err)
	}
	call.Published = map[string]tool.Published{"a.txt": {Version: 5, Digest: belay.DigestOf([]byte("two"))}}
	if r, err = file.Publish().Run(t.Context(), call); err != nil || r.Text != "a.txt is unchanged: version 5" || len(b.Sink.Facts()) != 1 {
		t.Errorf("again: %q, %v, %d facts", r.Text, err, len(b.Sink.Facts()))
	}
}

func TestPublishRefuses(t *testing.T) {
	many := map[string]tool.Published{}
	for i := range 100 {
		many[strings.Repeat("n", i+1)] = tool.Published{Version: 1}
	}
	for _, c := range []struct {
		args        args
		class, code string
	}{
		{args{}, tool.BadArguments, file.CodeOneOf},
		{args{"path": "a", "text": "b"}, tool.BadArguments, file.CodeOneOf},
		{args{"text": "x"}, tool.BadArguments, file.CodeBadName},
		{args{"text": "x", "name": "a/b"}, tool.BadArguments, file.CodeBadName},
		{args{"text": "x", "name": ".."}, tool.BadArguments, file.CodeBadName},
		{args{"text": "x", "name": "-rf"}, tool.BadArguments, file.CodeBadName},
		{args{"text": "x", "name": "a@2"}, tool.BadArguments, file.CodeBadName},
		{args{"text": "x", "name": "a\x1b[2J"}, tool.BadArguments, file.CodeBadName},
		{args{"text": "x", "name": strings.Repeat("x", 129)}, tool.BadArguments, file.CodeBadName},
		{args{"text": "x", "name": "x", "media": "markdown"}, tool.BadArguments, file.CodeBadMedia},
		{args{"text": "x", "name": "x", "media": "a/b; c=d"}, tool.BadArguments, file.CodeBadMedia},
		{args{"text": "x", "name": "x", "description": strings.Repeat("x", 501)}, tool.BadArguments, "BAD_ARGUMENTS"},
		{args{"path": "none"}, tool.NotFound, "NO_SUCH_FILE"},
		{args{"path": "../x"}, tool.Denied, "OUTSIDE_WORKSPACE"},
		{args{"path": "."}, tool.BadArguments, "IS_DIRECTORY"},
		{args{"text": "x", "name": "one-more"}, tool.Denied, file.CodeTooMany},
	} {
		b := tooltest.NewBench(t)
		call := b.Call(c.args)
		call.Published = many
		_, err := file.Publish().Run(t.Context(), call)
		if e := tooltest.Failure(err); e == nil || e.Class != c.class || e.Code != c.code {
			t.Errorf("%v: got %v", c.args, err)
		}
		if len(b.Sink.Facts()) != 0 {
			t.Errorf("%v: it is a fact all the same", c.args)
		}
	}
	b := tooltest.NewBench(t)
	b.Sink.Refuse = tool.ErrHoldsSecret
	if _, err := b.Run(t.Context(), file.Publish(), args{"text": "key", "name": "k"}); tooltest.CodeOf(err) != file.CodeSecret {
		t.Errorf("a secret: %v", err)
	}
}
