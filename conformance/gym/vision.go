package gym

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// The gym's two tools for layouts take graphs of boxes and look at no image, so
// they are computed here. What they answer is not compared by any scenario.
type (
	box struct {
		X      float64 `json:"x"`
		Y      float64 `json:"y"`
		Width  float64 `json:"width"`
		Height float64 `json:"height"`
	}
	node struct {
		ID     string `json:"id"`
		Type   string `json:"type,omitempty"`
		Role   string `json:"role,omitempty"`
		Text   string `json:"text,omitempty"`
		Bounds box    `json:"bounds"`
	}
	edge struct {
		From string `json:"from"`
		To   string `json:"to"`
		Type string `json:"type"` // contains, adjacent
	}
	graph struct {
		Nodes []node `json:"nodes"`
		Edges []edge `json:"edges"`
	}
	change struct {
		ID     string `json:"id"`
		Change string `json:"change"` // added, removed, moved, text
		Bounds box    `json:"bounds"` // of what is there afterwards, or was
	}
)

const maxNodes = 1_000 // edges grow with the square of them

func layoutScan() tool.Tool {
	return wrapped{spec("layout_scan", "Makes a graph of boxes: nodes, includeAdjacencyEdges, adjacencyThreshold."), func(_ context.Context, c tool.Call, _ args) (tool.Result, error) {
		var in struct {
			Nodes     []node  `json:"nodes"`
			Adjacency bool    `json:"includeAdjacencyEdges"`
			Threshold float64 `json:"adjacencyThreshold"`
		}
		if err := read(c.Args, &in); err != nil {
			return tool.Result{}, err
		}
		if err := check(in.Nodes); err != nil {
			return tool.Result{}, err
		}
		g := graph{Nodes: in.Nodes, Edges: []edge{}}
		for i, a := range in.Nodes {
			for k, b := range in.Nodes {
				switch {
				case i != k && a.Bounds.contains(b.Bounds):
					g.Edges = append(g.Edges, edge{a.ID, b.ID, "contains"})
				case i < k && in.Adjacency && !b.Bounds.contains(a.Bounds) && a.Bounds.gap(b.Bounds) <= in.Threshold:
					g.Edges = append(g.Edges, edge{a.ID, b.ID, "adjacent"})
				}
			}
		}
		return answer(g)
	}}
}

func visualDiff() tool.Tool {
	return wrapped{spec("visual_diff", "Compares two graphs of boxes: before, after."), func(_ context.Context, c tool.Call, _ args) (tool.Result, error) {
		var in struct {
			Before *graph `json:"before"`
			After  *graph `json:"after"`
		}
		if err := read(c.Args, &in); err != nil {
			return tool.Result{}, err
		}
		if in.Before == nil || in.After == nil {
			return tool.Result{}, tool.Failf(tool.BadArguments, codeArguments, "before and after must be graphs")
		}
		if err := cmp.Or(check(in.Before.Nodes), check(in.After.Nodes)); err != nil {
			return tool.Result{}, err
		}
		return answer(changes(*in.Before, *in.After))
	}}
}

func changes(before, after graph) []change {
	find := func(g graph, id string) *node {
		if i := slices.IndexFunc(g.Nodes, func(n node) bool { return n.ID == id }); i >= 0 {
			return &g.Nodes[i]
		}
		return nil
	}
	all := []change{}
	for _, was := range before.Nodes {
		switch is := find(after, was.ID); {
		case is == nil:
			all = append(all, change{was.ID, "removed", was.Bounds})
		case is.Bounds != was.Bounds:
			all = append(all, change{was.ID, "moved", is.Bounds})
		case is.Text != was.Text:
			all = append(all, change{was.ID, "text", is.Bounds})
		}
	}
	for _, is := range after.Nodes {
		if find(before, is.ID) == nil {
			all = append(all, change{is.ID, "added", is.Bounds})
		}
	}
	return all
}

func spec(name, doc string) tool.Spec {
	return tool.Spec{Name: name, Doc: doc, Input: json.RawMessage(anything), Effect: belay.Pure, ReadOnly: true}
}

func read(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return tool.Failf(tool.BadArguments, codeArguments, "%v", err)
	}
	return nil
}

func check(nodes []node) error {
	if len(nodes) > maxNodes {
		return tool.Failf(tool.BadArguments, codeArguments, "there are %d nodes; %d are the most", len(nodes), maxNodes)
	}
	for _, n := range nodes {
		if n.ID == "" || n.Bounds.Width < 0 || n.Bounds.Height < 0 {
			return tool.Failf(tool.BadArguments, codeArguments, "a node needs an id, and bounds that aren't negative")
		}
	}
	return nil
}

func answer(v any) (tool.Result, error) {
	b, err := json.Marshal(v)
	return tool.Result{Text: string(b)}, err
}

// contains reports whether b lies in a and is smaller.
func (a box) contains(b box) bool {
	return a != b && b.X >= a.X && b.Y >= a.Y && b.X+b.Width <= a.X+a.Width && b.Y+b.Height <= a.Y+a.Height
}

// gap is the space between two boxes, along the axis where it is wider.
func (a box) gap(b box) float64 {
	dx := math.Max(b.X-(a.X+a.Width), a.X-(b.X+b.Width))
	dy := math.Max(b.Y-(a.Y+a.Height), a.Y-(b.Y+b.Height))
	return math.Max(0, math.Max(dx, dy))
}
