package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/block"
)

// cost says what the session used and cost, as its turns tell at their ends. The rest is
// budget's.
func (c slash) cost() {
	s := c.conv.spent
	tokens := "unknown"
	if u := s.Usage; u.Reported {
		tokens = fmt.Sprintf("%s read, %s of them from a cache; %s written", block.Count(u.Input), block.Count(u.Cached), block.Count(u.Output))
	}
	c.printRow("turns   ", fmt.Sprintf("%d that ended: %s, %s, %d denied", c.conv.ended, block.Plural(s.Steps, "step"), block.Plural(s.Calls, "call"), s.Denied))
	c.printRow("tokens  ", tokens)
	c.printRow("cost    ", block.Money(c.conv.cost))
	c.printRow("time    ", block.Millis(s.ActiveMS)+" of work")
}

// tools lists the tools of the session, each with the beginning of what it says of itself.
func (c slash) tools() {
	if !c.begun() {
		return
	}
	in := map[string]any{"sessionId": c.conv.session}
	c.jobs.start(func(ctx context.Context) func() {
		var out struct {
			Tools []struct {
				Name        string `json:"name"`
				Description string `json:"description"`
				Allowed     bool   `json:"allowed"`
			} `json:"tools"`
		}
		err := c.Runtime.Do(ctx, "get_tool_inventory", in, &out)
		return func() {
			c.failed(err)
			for _, t := range out.Tools {
				doc, _, _ := strings.Cut(t.Description, ". ")
				if t.Allowed {
					doc += " (allowed without a question)"
				}
				c.printRow(fmt.Sprintf("%-18s ", block.Line(t.Name)), strings.TrimSuffix(block.Short(doc, 200), "."))
			}
		}
	})
}

// config shows what isn't as it is by default, and who says so.
func (c slash) config() {
	in := map[string]any{"workspace": c.conv.workspace}
	c.jobs.start(func(ctx context.Context) func() {
		var out struct {
			Settings []struct{ Name, Value, Source, From string } `json:"settings"`
			Ignored  []struct{ Ignored, From, Reason string }     `json:"ignored"`
		}
		err := c.Runtime.Do(ctx, "show_settings", in, &out)
		return func() {
			if c.failed(err); err != nil {
				return
			}
			same := 0
			for _, s := range out.Settings {
				if s.Source == "default" {
					same++
					continue
				}
				c.printRow(fmt.Sprintf("%-18s ", s.Name), s.Value+"  ("+cmp.Or(s.From, s.Source)+")")
			}
			for _, i := range out.Ignored {
				c.printRow("ignored: ", fmt.Sprintf("%s  (%s): %s", i.Ignored, i.From, i.Reason))
			}
			c.printRow("", block.Plural(same, "setting")+" as they are by default; belay config show lists all, belay config set NAME VALUE changes one")
		}
	})
}

// pickModel lets the person choose a model: those of the vendor that is asked now come
// first, and each vendor's default before its others.
func (c slash) pickModel() {
	here := c.conv.settings.Provider
	c.jobs.start(func(ctx context.Context) func() {
		text, err := c.Desk.BelayText(ctx, "models", "list", "--json")
		var all []listedModel
		for d := json.NewDecoder(bytes.NewReader(text)); err == nil; {
			var m listedModel
			if err = d.Decode(&m); err == nil {
				all = append(all, m)
			}
		}
		return func() {
			if err != io.EOF {
				c.failed(err)
				return
			}
			slices.SortStableFunc(all, func(a, b listedModel) int { return cmp.Compare(a.place(here), b.place(here)) })
			p := &picker{title: "model"}
			for _, m := range all {
				p.rows = append(p.rows, row{m.text(), func() { c.set(map[string]any{"provider": m.Provider, "model": m.Model}) }})
			}
			c.choose(p)
		}
	})
}

// listedModel is a model as belay models list tells it.
type listedModel struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Default  bool   `json:"default"`
	Context  int64  `json:"context"`
	Prices   *struct {
		Input  int64 `json:"input"`
		Output int64 `json:"output"`
	} `json:"prices"`
}

// place orders models.
func (m *listedModel) place(here string) int {
	at := 0
	if m.Provider != here {
		at += 2
	}
	if !m.Default {
		at++
	}
	return at
}

func (m *listedModel) text() string {
	parts := []string{m.Provider + "/" + m.Model}
	if m.Context > 0 {
		parts = append(parts, block.Count(m.Context)+" tokens")
	}
	if m.Prices != nil {
		parts = append(parts, "$"+block.Dollars(m.Prices.Input)+" in, $"+block.Dollars(m.Prices.Output)+" out")
	}
	return strings.Join(parts, ", ")
}

// export writes everything of the session into a file of the folder in which belay was
// started, also when a server has the session.
func (c slash) export(file string) {
	if !c.begun() {
		return
	}
	session := c.conv.session
	if file == "" {
		file = string(session) + ".belay"
	}
	c.jobs.start(func(ctx context.Context) func() {
		err := c.Desk.Save(file, func(w io.Writer) error {
			return c.Runtime.Read(ctx, "exportSession", Query{ID: string(session)}, w)
		})
		return func() {
			if c.failed(err); err == nil {
				c.printRow("", "written to "+file+"; belay import brings it in")
			}
		}
	})
}
