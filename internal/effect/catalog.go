package effect

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/tool"
)

// maxFound is how many definitions a search for tools returns.
const maxFound = 5

// catalog is the tools of a turn, of which those are found that are offered by their names.
type catalog []belay.ToolSpec

// Find implements tool.Finder.
func (c catalog) Find(query string) (found []belay.ToolSpec) {
	offered := slices.DeleteFunc(slices.Clone(c), func(s belay.ToolSpec) bool { return s.Load != tool.LoadSearch })
	if i := slices.IndexFunc(offered, func(s belay.ToolSpec) bool { return s.Name == strings.TrimSpace(query) }); i >= 0 {
		return offered[i : i+1]
	}
	var all strings.Builder // each is a line, and each line a chunk
	for _, s := range offered {
		all.WriteString(strings.ReplaceAll(s.Name+" "+s.Doc+" "+string(s.Input), "\n", " ") + "\n")
	}
	text := all.String()
	for _, hit := range window.NewIndex(text, 1).Best(text, query, 0, maxFound) {
		found = append(found, offered[hit.Chunk-1])
	}
	return found
}
