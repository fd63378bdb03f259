package eval

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Format reads the scenarios of a file that is written in another format. ok is
// false when it isn't one of that format.
type Format func(name string, data []byte) (all []*Scenario, ok bool, err error)

// Load reads scenarios: of files, and of all files below directories whose names
// end in .yaml, .yml or .json. Two scenarios of one id are a mistake.
func Load(paths []string, others ...Format) ([]*Scenario, error) {
	files, err := collect(paths)
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	seen := map[string]*Scenario{}
	for _, file := range files {
		here, err := load(file, others)
		if err != nil {
			return nil, err
		}
		for _, s := range here {
			if first := seen[s.ID]; first != nil {
				return nil, s.mistake("the id %q is taken by %s", s.ID, first.place()).WithHint("give one of them another id")
			}
			seen[s.ID] = s
		}
		all = append(all, here...)
	}
	return all, nil
}

func (s *Scenario) place() string { return s.File + ":" + strconv.Itoa(s.Line) }

// mistake is one that concerns a scenario as a whole.
func (s *Scenario) mistake(format string, args ...any) *belay.Error {
	return belay.Errorf(belay.CodeBadScenario, format, args...).At(s.place())
}

func load(file string, others []Format) ([]*Scenario, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > strictyaml.MaxBytes {
		return nil, belay.Errorf(belay.CodeBadScenario, "the file has %d bytes; %d are the most", info.Size(), strictyaml.MaxBytes).At(file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	for _, format := range others {
		if all, ok, err := format(file, data); ok || err != nil {
			return all, err
		}
	}
	return Parse(file, data)
}

func unreadable(file string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return belay.Errorf(belay.CodeBadScenario, "it can't be read: %v", err).At(file).WithHint("belay eval PATH, a scenario or a directory of some")
}

// collect finds the files, each once, in the order of the paths and then by name.
func collect(paths []string) (files []string, err error) {
	seen := map[string]bool{}
	add := func(file string) {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			real = file
		}
		if !seen[real] {
			seen[real] = true
			files = append(files, file)
		}
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, unreadable(p, err)
		}
		if !info.IsDir() {
			add(p)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			hidden := strings.HasPrefix(d.Name(), ".") && name != p
			switch {
			case d.IsDir() && hidden:
				return fs.SkipDir
			case !d.IsDir() && !hidden && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
				add(name)
			}
			return nil
		})
		if err != nil {
			return nil, unreadable(p, err)
		}
		if len(files) == before && len(seen) == 0 {
			return nil, belay.Errorf(belay.CodeBadScenario, "there is no file that ends in .yaml, .yml or .json").At(p).WithHint("belay eval PATH, a scenario or a directory of some")
		}
	}
	return files, nil
}

// Pick keeps the scenarios whose id, category/id or tag matches.
func Pick(all []*Scenario, pattern *regexp.Regexp) (some []*Scenario) {
	for _, s := range all {
		if pattern.MatchString(s.Category+"/"+s.ID) || slices.ContainsFunc(s.Tags, pattern.MatchString) {
			some = append(some, s)
		}
	}
	return some
}
