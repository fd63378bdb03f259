// Command build makes web/dist of web/src: the script and its styles bundled, the types
// of the interface made of docs/openapi.json, the icons of web/third_party/lucide, and
// the licences of what is bundled. The same sources make the same bytes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if err := build(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(web string) error {
	if err := types(filepath.Join(web, "..", "docs", "openapi.json"), filepath.Join(web, "src", "api.gen.ts")); err != nil {
		return err
	}
	if err := icons(filepath.Join(web, "third_party", "lucide", "icons"), filepath.Join(web, "src", "icons.gen.ts")); err != nil {
		return err
	}
	dist := filepath.Join(web, "dist")
	src, err := filepath.Abs(filepath.Join(web, "src"))
	if err != nil {
		return err
	}
	done := api.Build(api.BuildOptions{
		AbsWorkingDir: filepath.Dir(src),
		EntryPoints:   []string{"src/app.tsx", "src/app.css", "src/markdown.ts"},
		Outdir:        "dist",
		Bundle:        true, Write: true, Metafile: true,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: api.FormatESModule, Target: api.ES2022, Platform: api.PlatformBrowser,
		Engines:         []api.Engine{{Name: api.EngineChrome, Version: "125"}, {Name: api.EngineFirefox, Version: "128"}, {Name: api.EngineSafari, Version: "17.5"}},
		JSX:             api.JSXAutomatic,
		JSXImportSource: "preact",
		NodePaths:       []string{filepath.Join(filepath.Dir(src), "third_party")},
		LegalComments:   api.LegalCommentsNone,
		Charset:         api.CharsetUTF8,
		Loader:          map[string]api.Loader{".svg": api.LoaderText},
		LogLevel:        api.LogLevelWarning,
	})
	if len(done.Errors) > 0 {
		return fmt.Errorf("the bundle has %d errors", len(done.Errors))
	}
	if err := alone(filepath.Dir(src), done.Metafile); err != nil {
		return err
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		b, err := os.ReadFile(filepath.Join(web, "src", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dist, name), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return licences(filepath.Join(web, "third_party"), filepath.Join(web, "THIRD_PARTY_LICENSES"))
}

// speaker is the one module that may speak to the server.
const speaker = "src/api.ts"

var speaks = regexp.MustCompile(`\b(fetch\(|XMLHttpRequest|EventSource|WebSocket|sendBeacon|importScripts|serviceWorker)`)

// alone reports a module in a bundle, by what the bundler says of it, that speaks to a
// server and may not.
func alone(web, metafile string) error {
	var of struct{ Inputs map[string]struct{} }
	if err := json.Unmarshal([]byte(metafile), &of); err != nil {
		return err
	}
	if _, has := of.Inputs[speaker]; !has {
		return fmt.Errorf("%s isn't in the bundle", speaker)
	}
	for name := range of.Inputs {
		b, err := os.ReadFile(filepath.Join(web, name))
		if err != nil {
			return err
		}
		if at := speaks.Find(b); at != nil && name != speaker {
			return fmt.Errorf("%s has %q: only %s speaks to the server", name, at, speaker)
		}
	}
	return nil
}

// licences joins the licences of what is bundled.
func licences(from, to string) error {
	var out strings.Builder
	err := filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "LICENSE") {
			return err
		}
		text, err := os.ReadFile(p)
		name, _ := filepath.Rel(from, filepath.Dir(p))
		fmt.Fprintf(&out, "== %s\n\n%s\n", filepath.ToSlash(name), text)
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(to, []byte(out.String()), 0o644)
}

var (
	shape     = regexp.MustCompile(`<(path|circle|rect|line|polyline|ellipse|polygon)\s([^>]*?)/>`)
	attribute = regexp.MustCompile(`([a-z0-9-]+)="([^"]*)"`)
)

// icons makes a module of the shapes of icons: no text becomes a part of a page.
func icons(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.svg"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	all := map[string][][2]any{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var shapes [][2]any
		for _, m := range shape.FindAllStringSubmatch(string(b), -1) {
			of := map[string]string{}
			for _, a := range attribute.FindAllStringSubmatch(m[2], -1) {
				of[a[1]] = a[2]
			}
			shapes = append(shapes, [2]any{m[1], of})
		}
		all[strings.TrimSuffix(filepath.Base(f), ".svg")] = shapes
	}
	return module(to, "export const icons = ", all, " as const;\n")
}

func module(to, before string, v any, after string) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, []byte("// Made by go generate; do not edit.\n"+before+string(b)+after), 0o644)
}
