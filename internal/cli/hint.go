package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/lib/match"
)

// useCase is how a use case of the table is named.
var useCase = match.Lazy(`\b[a-z]+(_[a-z]+)+\b`)

// commandsIn is a hint in which use cases are named as a terminal calls them: by the
// command that performs one, rather by one that performs nothing else, or by belay api.
func commandsIn(a *command.Program, hint string) string {
	if !useCase.Get().MatchString(hint) {
		return hint
	}
	k, err := parser(a, new(command.Flags), nil, func(int) {})
	if err != nil {
		return hint
	}
	return useCase.Get().ReplaceAllStringFunc(hint, func(name string) string {
		found := ""
		for _, leaf := range k.Model.Leaves(false) {
			uses := strings.Split(leaf.Tag.Get("use"), ",")
			if slices.Contains(uses, name) && (found == "" || len(uses) == 1) {
				if found = "belay " + strings.TrimPrefix(leaf.Path(), "belay "); len(uses) == 1 {
					return found
				}
			}
		}
		read := slices.ContainsFunc(a.Build.Reads, func(r app.Read) bool { return r.Name == name })
		if found == "" && (read || app.Find(a.Build.Commands, name) != nil) {
			return "belay api " + name
		}
		return cmp.Or(found, name)
	})
}
