// Package web has the console: the page that belay serve shows, as go generate built it.
package web

import (
	"embed"
	"io/fs"
)

//go:generate go run -C build .

//go:embed dist
var dist embed.FS

// Dist is the page with its script, styles and icon.
func Dist() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("web: " + err.Error()) // the folder is embedded
	}
	return sub
}
