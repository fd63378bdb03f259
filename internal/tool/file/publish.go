//go:build unix

package file

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// publishName is the name of the tool.
const publishName = "artifact_publish"

// Codes of problems, besides those of files.
const (
	CodeOneOf       = "PATH_OR_TEXT"
	CodeBadName     = "BAD_NAME"
	CodeBadMedia    = "BAD_MEDIA"
	CodeSecret      = "HOLDS_SECRET"
	CodeTooMany     = "TOO_MANY_ARTIFACTS"
	maxArtifact     = 32 << 20
	maxArtifactName = 128
	maxArtifactNote = 500
	maxArtifacts    = 100 // as many as the thread remembers
	defaultBinary   = "application/octet-stream"
)

//go:embed artifact_publish.md
var publishDoc string

type publishArgs struct {
	Path  string  `json:"path,omitempty" jsonschema:"file"`
	Text  *string `json:"text,omitempty" jsonschema:"or text"`
	Name  string  `json:"name,omitempty" jsonschema:"file name"`
	Media string  `json:"media,omitempty" jsonschema:"media type"`
	Note  string  `json:"description,omitempty" jsonschema:"what it is"`
}

// Publish hands results over. What is published is kept byte for byte and named by its
// digest, versions of a name count up, publishing the same again makes no new version,
// and content that holds a registered secret isn't published.
func Publish() tool.Tool {
	spec := tool.Spec{Name: publishName, Doc: strings.TrimSpace(publishDoc), Effect: belay.Idempotent, ReadOnly: true,
		PathArg: "path", Access: belay.Read, Exclusive: true, Capabilities: []string{tool.CapPublish}}
	return tool.New(spec, publish)
}

func publish(ctx context.Context, c tool.Call, in publishArgs) (tool.Result, error) {
	content, err := contentOf(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	name, err := nameOf(in)
	if err != nil {
		return tool.Result{}, err
	}
	media, err := mediaOf(name, in.Media, content)
	if err != nil {
		return tool.Result{}, err
	}
	before, known := c.Published[name]
	if known && before.Digest == belay.DigestOf(content) {
		return tool.Result{Text: fmt.Sprintf("%s is unchanged: version %d", name, before.Version)}, nil
	}
	if !known && len(c.Published) >= maxArtifacts {
		return tool.Result{}, tool.Failf(tool.Denied, CodeTooMany, "%d artifacts are published already", len(c.Published)).
			WithHint("publish another version of one of them, or put several files into an archive")
	}
	ref, err := c.Sink.Keep(content, media)
	if errors.Is(err, tool.ErrHoldsSecret) {
		return tool.Result{}, tool.Failf(tool.Denied, CodeSecret, "%s holds a secret of this machine and isn't published", name).
			WithHint("take the secret out first")
	}
	if err != nil {
		return tool.Result{}, err
	}
	version := before.Version + 1
	err = c.Sink.Durable(event.ArtifactChanged{Kind: "artifact", Op: "published", Name: name, Version: strconv.Itoa(version),
		Path: in.Path, After: &ref, Digest: ref.Digest, Note: in.Note})
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: fmt.Sprintf("published %s, version %d: %d bytes, %s, %s", name, version, ref.Size, media, ref.Digest)}, nil
}

// contentOf is what to publish.
func contentOf(ctx context.Context, c tool.Call, in publishArgs) ([]byte, error) {
	if (in.Path == "") == (in.Text == nil) {
		return nil, tool.Failf(tool.BadArguments, CodeOneOf, "give either path or text")
	}
	if event.TextLen(in.Note) > maxArtifactNote {
		return nil, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "the description has %d bytes; %d are the most", event.TextLen(in.Note), maxArtifactNote)
	}
	if in.Text != nil {
		return []byte(*in.Text), nil
	}
	return Content(ctx, c.Root, in.Path, maxArtifact)
}

// nameOf is a name that can be a file's anywhere.
func nameOf(in publishArgs) (string, error) {
	name := strings.TrimSpace(in.Name)
	if name == "" && in.Path != "" {
		name = path.Base(path.Clean(in.Path))
	}
	bad := func(why string) (string, error) {
		return "", tool.Failf(tool.BadArguments, CodeBadName, "the name %s", why).WithHint(`use a file's name, such as "report.md"`)
	}
	switch {
	case name == "":
		return bad("is missing")
	case len(name) > maxArtifactName:
		return bad(fmt.Sprintf("has %d bytes; %d are the most", len(name), maxArtifactName))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == '/' || r == '\\' || r == '@' }):
		return bad("contains a slash, an @ or a character that can't be printed")
	case name[0] == '.' || name[0] == '-':
		return bad("begins with a dot or a hyphen")
	}
	return name, nil
}
