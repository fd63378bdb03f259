package shell

import (
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
)

// index has the row of every name.
var index match.Made[map[string]*program]

func makeIndex() *map[string]*program {
	all := map[string]*program{}
	for i := range rows {
		for name := range strings.SplitSeq(rows[i].name, ",") {
			all[name] = &rows[i]
		}
	}
	return &all
}

// lookup finds the row of a program, or nothing.
func lookup(name string) *program { return (*index.Get(makeIndex))[name] }

// table is an option table, read.
type table struct {
	options map[string]option
	any     bool // options beyond the table change nothing
	files   bool // @FILE stands for the words in a file
	dotless bool // no option has a dot
	sharp   bool // some option does more than the program without options
}

// readTable reads what a row says of options.
func readTable(opts string) *table {
	t := &table{options: map[string]option{}}
	for f := range strings.FieldsSeq(opts) {
		switch f {
		case "*":
			t.any = true
			continue
		case "@":
			t.files = true
			continue
		case ".":
			t.dotless = true
			continue
		}
		name, o := f, option{}
		if i := strings.LastIndexAny(f, "=?:"); i > 0 && len(f)-i <= 2 {
			name, o.arg = f[:i], f[i]
			if o.arg == ':' {
				o.arg = 0
			}
			if len(f)-i == 2 {
				o.effect = f[i+1]
			}
		}
		if rest, ok := strings.CutPrefix(name, "-["); ok { // many flags in one
			for i := range len(rest) - 1 {
				t.options["-"+rest[i:i+1]] = o
			}
			continue
		}
		t.options[name] = o
		t.sharp = t.sharp || o.effect != 0 && strings.IndexByte("rpPv", o.effect) < 0
	}
	return t
}

// table is the row's option table. It must not be changed.
func (p *program) table() *table {
	return p.read.Get(func() *table { return readTable(p.opts) })
}

// names reports whether a list separated by commas has a name.
func names(list, name string) bool {
	return name != "" && strings.Contains(","+list+",", ","+name+",")
}
