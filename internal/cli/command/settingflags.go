package command

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/belay-run/belay/internal/config"
)

// SettingFlags are the flags of a command that takes settings: one for each row of
// the table of settings. Precedence: flag, environment, the files of the workspace,
// the person and the machine, the default. A session that exists has its own
// settings instead of all but the flags.
type SettingFlags struct {
	FailOnDenied bool `help:"End with exit code 4 if a call was denied, also when the task was completed."`

	values []settingValue // as the table's rows
}

// settingValue is where the parser puts a value.
type settingValue struct {
	text string
	list []string
	on   bool
}

// Given are the settings that were given.
func (f *SettingFlags) Given() config.Given {
	g := config.Given{}
	for i, v := range f.values {
		switch name := config.All()[i].Name; {
		case v.on:
			g[name] = []string{"true"}
		case v.text != "":
			g[name] = []string{v.text}
		case len(v.list) > 0:
			g[name] = v.list
		}
	}
	return g
}

// settingFlags makes the flags for a parser.
func (f *SettingFlags) settingFlags(r *kong.Registry) []*kong.Flag {
	f.values = make([]settingValue, len(config.All()))
	var flags []*kong.Flag
	for i, s := range config.All() {
		if s.Own {
			continue
		}
		at, tag := &f.values[i], &kong.Tag{Sep: ','}
		target := reflect.ValueOf(&at.text)
		switch {
		case s.List:
			target, tag.Sep = reflect.ValueOf(&at.list), -1
		case s.Switch():
			target = reflect.ValueOf(&at.on)
		}
		help := strings.ReplaceAll(s.Usage(), "$", "$$") // the parser reads $ as the beginning of a variable
		v := &kong.Value{Name: s.Name, Help: help, OrigHelp: help, Tag: tag, Target: target.Elem(), DefaultValue: reflect.New(target.Elem().Type()).Elem(), Mapper: r.ForValue(target.Elem())}
		v.Flag = &kong.Flag{Value: v, PlaceHolder: s.Value, Group: &kong.Group{Key: "settings", Title: "Settings, also of belay config and the environment:"}}
		flags = append(flags, v.Flag)
	}
	return flags
}

// AddSettingFlags gives the flags of settings to every command that takes them. In
// help a command's own flags come first.
func AddSettingFlags(k *kong.Kong) error {
	r := kong.NewRegistry().RegisterDefaults()
	for _, f := range k.Model.Flags {
		f.Group = &kong.Group{Key: "every", Title: "Flags of every command:"}
	}
	return kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
		if n, ok := n.(*kong.Node); ok && n.Target.CanAddr() {
			if takes, ok := n.Target.Addr().Interface().(interface {
				settingFlags(*kong.Registry) []*kong.Flag
			}); ok {
				n.Flags = append(takes.settingFlags(r), n.Flags...)
			}
		}
		return next(nil)
	})
}
