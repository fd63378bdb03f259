package cli

import (
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// grammarOf is the grammar for some arguments: the whole one, or only the
// command that they name. Building the whole one takes longer than everything
// else that a start does; a command doesn't need its neighbours.
func grammarOf(args []string) (root any, place *Place) {
	f, ok := commandField(args)
	if !ok {
		g := new(grammar)
		return g, &g.Place
	}
	v := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "Place", Type: reflect.TypeFor[Place](), Anonymous: true},
		{Name: f.Name, Type: f.Type, Tag: f.Tag},
	}))
	return v.Interface(), v.Elem().Field(0).Addr().Interface().(*Place)
}

// commandField is the command that arguments name, when it is certain: the
// first word that isn't a flag that every command has.
func commandField(args []string) (reflect.StructField, bool) {
	for i := 0; i < len(args); i++ {
		switch name, _, joined := strings.Cut(args[i], "="); {
		case name == "--json" || joined && slices.Contains(placeFlags[:], name):
			continue
		case slices.Contains(placeFlags[:], name):
			i++
			continue
		}
		g := reflect.TypeFor[grammar]()
		for f := range g.Fields() {
			if strings.ToLower(f.Name) == args[i] && !f.Anonymous && f.Type != reflect.TypeFor[completionCmd]() {
				return f, true
			}
		}
		break
	}
	return reflect.StructField{}, false
}

// placeFlags are the flags of Place that take a value.
var placeFlags = [...]string{"--store", "--workspace"}

func newParser(root any, sys Sys, exit func(int)) (*kong.Kong, error) {
	return kong.New(root,
		kong.Name("belay"),
		kong.Description("Runs agents: every step is recorded before it happens, every action is governed, nothing accepted is lost.\n\n"+
			"Exit codes: 0 completed, 1 failed, 2 usage, 3 waits for a person, 4 denied, 5 budget, 6 timed out, 7 lost, 8 store, 130 cancelled."),
		kong.Writers(sys.Stdout, sys.Stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
}
