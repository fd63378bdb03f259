//go:build unix

package file

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// notebook is a Jupyter notebook of format 4. What isn't known of it stays as it is.
type notebook struct {
	fields map[string]json.RawMessage
	cells  []notebookCell
}

type notebookCell map[string]json.RawMessage

// parseNotebook reads a notebook; false: it is none.
func parseNotebook(content []byte) (n notebook, ok bool) {
	var major int
	if json.Unmarshal(content, &n.fields) != nil || json.Unmarshal(n.fields["nbformat"], &major) != nil || major != 4 {
		return n, false
	}
	return n, json.Unmarshal(n.fields["cells"], &n.cells) == nil && !slices.ContainsFunc(n.cells, func(c notebookCell) bool { return c == nil })
}

// bytes is the notebook as Jupyter writes it: fields in the order of their names,
// indented by one.
func (n notebook) bytes() ([]byte, error) {
	all := map[string]any{"cells": n.cells}
	for name, value := range n.fields {
		if name != "cells" {
			all[name] = value
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(all)
	return b.Bytes(), err
}

// lines is a text that a notebook has whole or as a list of lines.
func lines(raw json.RawMessage) string {
	var list []string
	var text string
	if json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, "")
	}
	_ = json.Unmarshal(raw, &text) // anything else is no text
	return text
}

func (c notebookCell) kind() string { return lines(c["cell_type"]) }

// text is a cell as it is shown, with the text of its outputs.
func (c notebookCell) text(number int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[cell %d, %s]\n%s\n", number, c.kind(), strings.TrimSuffix(lines(c["source"]), "\n"))
	for _, o := range c.outputs() {
		said := lines(o.Text) + lines(o.Data["text/plain"])
		if o.Error != "" {
			said = o.Error + ": " + o.Value
		}
		for _, media := range shownMedia {
			if len(o.Data[media]) > 0 {
				said += "\n[" + media + "]"
			}
		}
		if said = strings.Trim(said, "\n"); said != "" {
			fmt.Fprintf(&b, "[output]\n%s\n", said)
		}
	}
	return b.String()
}

// notebookOutput is what a code cell returned.
type notebookOutput struct {
	Text  json.RawMessage            `json:"text"`
	Data  map[string]json.RawMessage `json:"data"`
	Error string                     `json:"ename"`
	Value string                     `json:"evalue"`
}

func (c notebookCell) outputs() (out []notebookOutput) {
	_ = json.Unmarshal(c["outputs"], &out) // what can't be read isn't shown
	return out
}

// pictures are those among a cell's outputs, at most so many.
func (c notebookCell) pictures(call tool.Call, number, most int) (out []belay.Attachment, err error) {
	for _, o := range c.outputs() {
		for _, media := range shownMedia {
			raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(lines(o.Data[media]), "\n", ""))
			if err != nil || len(raw) == 0 || len(raw) > belay.MaxImageBytes || len(out) >= most {
				continue
			}
			a, _, err := attach(call, fmt.Sprintf("cell-%d-%d", number, len(out)+1), media, raw)
			if _, refused := err.(*tool.Error); refused {
				continue // the others can still be shown
			}
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// notebook shows cells from offset on, as many as there is room for.
func (p *place) notebook(c tool.Call, in readArgs, content []byte, n notebook) (r tool.Result, err error) {
	first := max(in.Offset, 1)
	if first > max(len(n.cells), 1) {
		return r, tool.Failf(tool.BadArguments, CodeBeyondEnd, "%s has %d cells; offset %d is beyond them", show(p.name), len(n.cells), first)
	}
	var b strings.Builder
	last := first - 1
	for i := first; i <= len(n.cells) && (in.Limit == 0 || i < first+in.Limit); i++ {
		text := n.cells[i-1].text(i)
		if room := readLimit - 512 - b.Len(); len(text) > room {
			if last >= first {
				break
			}
			text = string(c.Sink.Cut([]byte(text))(0, room)) + "\n[the rest of this cell can't be shown by read]\n"
		}
		b.WriteString(text)
		last = i
		more, err := n.cells[i-1].pictures(c, i, tool.MaxAttached-len(r.Attached))
		if err != nil {
			return r, err
		}
		r.Attached = append(r.Attached, more...)
	}
	fmt.Fprintf(&b, "[a notebook, cells %d-%d of %d; offset and limit are cells, notebook_edit changes them]", first, last, len(n.cells))
	if _, err := keep(c, content); err != nil {
		return r, err
	}
	r.Text, r.Files = b.String(), p.seen(digestOf(content))
	return r, nil
}
