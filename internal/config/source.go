package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	toolfile "github.com/belay-run/belay/internal/tool/file"
)

// contentOf is what a file of the machine or the person holds; nil: there is none.
func contentOf(path string, most int64, code belay.Code) ([]byte, error) {
	b, err := files.ReadUpTo(path, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, unreadable(code, path, err)
	}
	return b, nil
}

func unreadable(code belay.Code, path string, err error) error {
	return belay.Errorf(code, "it can't be read: %s", files.Reason(err)).At(path).WithHint("repair it or move it away")
}

// yamlIn are the paths of the YAML files in a folder, which need not exist.
func yamlIn(dir string, code belay.Code) (paths []string, err error) {
	entries, err := files.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(code, dir, err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); (ext == ".yaml" || ext == ".yml") && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// judged is a file of the workspace, its path and how far it is trusted.
func (in Input) judged(ctx context.Context, root *os.Root, rel string, code belay.Code) (path string, content []byte, s Standing, err error) {
	path = filepath.Join(in.Workspace, filepath.FromSlash(rel))
	if content, err = toolfile.Content(ctx, root, rel, MaxManifest); err != nil {
		return path, nil, Unknown, unreadable(code, path, err)
	}
	s, err = in.standing(ctx, rel, content)
	return path, content, s, err
}
