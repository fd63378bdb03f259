//go:build unix

package file

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/tool"
)

// medias are the types of names, independent of what a machine has installed.
var medias = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".diff": "text/x-diff", ".gif": "image/gif", ".gz": "application/gzip",
	".htm": "text/html", ".html": "text/html", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".js": "text/javascript",
	".json": "application/json", ".jsonl": "application/jsonl", ".log": "text/plain", ".md": "text/markdown", ".mp4": "video/mp4",
	".patch": "text/x-diff", ".pdf": "application/pdf", ".png": "image/png", ".svg": "image/svg+xml", ".tar": "application/x-tar",
	".toml": "application/toml", ".txt": "text/plain", ".wasm": "application/wasm", ".webp": "image/webp", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip",
}

// mediaOf is the type given, or what the name and the content say.
func mediaOf(name, given string, content []byte) (string, error) {
	if given != "" {
		given = strings.ToLower(strings.TrimSpace(given))
		if !mediaType.Match(given) || len(given) > 100 {
			return "", tool.Failf(tool.BadArguments, CodeBadMedia, "%.60q is not a media type", given).WithHint("text/markdown, application/json, image/png …, or leave it out")
		}
		return given, nil
	}
	if m := medias[strings.ToLower(path.Ext(name))]; m != "" {
		return m, nil
	}
	if utf8.Valid(content) && !strings.ContainsRune(string(content[:min(len(content), 8000)]), 0) {
		return "text/plain", nil
	}
	return defaultBinary, nil
}

// mediaType is one as RFC 6838 names it, in small letters.
var mediaType = match.Lazy(`^[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+$`)
