package web

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// Formats of a page.
const (
	formatMarkdown = "markdown"
	formatText     = "text"
	formatRaw      = "raw"
)

// page is what is shown of an answer: a text, or the bytes of a picture or a document.
type page struct {
	url   *url.URL
	moved *url.URL // it is at another host
	media string
	title string
	text  string
	bytes []byte // of what isn't text
}

func (p *page) size() int { return len(p.text) + len(p.bytes) + 1<<10 }

// read makes a page of an answer. What it is follows from its bytes where these are
// plain to see, and from what the server says otherwise.
func read(ctx context.Context, a *answer, format string) (*page, error) {
	p := &page{url: a.url, moved: a.moved}
	if a.moved != nil {
		return p, nil
	}
	said, _, _ := mime.ParseMediaType(a.media)
	switch p.media, _, _ = mime.ParseMediaType(http.DetectContentType(a.body)); {
	case p.media == "image/png", p.media == "image/jpeg", p.media == "image/gif", p.media == "image/webp", p.media == belay.MediaPDF:
		p.bytes = a.body
		return p, nil
	case strings.HasPrefix(p.media, "text/"):
		if textual(said) {
			p.media = said
		}
	case !textual(said) || bytes.IndexByte(a.body, 0) >= 0 && !strings.Contains(strings.ToLower(a.media), "utf-16"):
		return nil, tool.Failf(tool.NotFound, CodeNotText, "it is %s, which can't be shown", p.media).WithHint("a program can load it, if that is allowed")
	default:
		p.media = said
	}
	p.text = decode(a.body, a.media, p.media)
	if p.media != "text/html" && p.media != "application/xhtml+xml" || format == formatRaw {
		return p, nil
	}
	return p, p.convert(ctx, format)
}

// textual reports whether a media type is one of text.
func textual(media string) bool {
	kind, of, _ := strings.Cut(media, "/")
	return kind == "text" || strings.HasSuffix(of, "+json") || strings.HasSuffix(of, "+xml") ||
		kind == "application" && (of == "json" || of == "xml" || of == "javascript" || of == "yaml" || of == "x-yaml" || of == "toml" || of == "x-ndjson" || of == "jsonl" || of == "sql")
}

// decode is a text in UTF-8, by what the server or the text itself says of its
// characters. A text that is UTF-8 is so, whoever says what.
func decode(body []byte, said, media string) string {
	if utf8.Valid(body) {
		return strings.TrimPrefix(string(body), "\ufeff")
	}
	if media != "text/html" && !strings.Contains(strings.ToLower(said), "charset") {
		said = media // what says nothing is looked at like a page
	}
	e, _, _ := charset.DetermineEncoding(body, said)
	out, err := e.NewDecoder().Bytes(body)
	if err != nil {
		out = body
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(out), "\uFFFD"), "\ufeff")
}

// convert makes Markdown or plain text of HTML. What a page does to the parser ends here.
func (p *page) convert(ctx context.Context, format string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = tool.Failf(tool.NotFound, CodeBroken, "the page of %s can't be taken apart", plainHost(p.url)).WithHint("ask for it with format raw")
		}
	}()
	doc, err := html.Parse(strings.NewReader(p.text))
	if err != nil {
		return tool.Failf(tool.NotFound, CodeBroken, "the page of %s can't be taken apart", plainHost(p.url)).WithHint("ask for it with format raw")
	}
	p.title = strings.Join(strings.Fields(titleOf(doc)), " ")
	clean(doc, baseOf(doc, p.url))
	if format == formatText {
		p.text = plainText(doc)
		return ctx.Err()
	}
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	b, err := c.ConvertNode(doc, converter.WithContext(ctx))
	if err != nil {
		return tool.Failf(tool.NotFound, CodeBroken, "the page of %s can't be taken apart", plainHost(p.url)).WithHint("ask for it with format raw")
	}
	p.text = strings.TrimSpace(string(b))
	return ctx.Err()
}

func find(n *html.Node, a atom.Atom) *html.Node {
	for d := range n.Descendants() {
		if d.DataAtom == a {
			return d
		}
	}
	return nil
}

func titleOf(doc *html.Node) string {
	if t := find(doc, atom.Title); t != nil && t.FirstChild != nil {
		return t.FirstChild.Data
	}
	return ""
}

// baseOf is what the addresses in a page are relative to.
func baseOf(doc *html.Node, at *url.URL) *url.URL {
	if b := find(doc, atom.Base); b != nil {
		for _, a := range b.Attr {
			if u, err := at.Parse(strings.TrimSpace(a.Val)); a.Key == "href" && err == nil {
				return u
			}
		}
	}
	return at
}

// clean takes out what says nothing to a reader, and makes addresses absolute.
func clean(doc *html.Node, base *url.URL) {
	var drop []*html.Node
	for n := range doc.Descendants() {
		switch n.DataAtom {
		case atom.Script, atom.Style, atom.Svg, atom.Template, atom.Iframe, atom.Noscript, atom.Button, atom.Select:
			drop = append(drop, n)
			continue
		case atom.A, atom.Img:
		default:
			continue
		}
		for i := range n.Attr {
			if a := &n.Attr[i]; a.Key == "href" || a.Key == "src" {
				a.Val = absolute(base, a.Val)
			}
		}
	}
	for _, n := range drop {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// absolute is an address as it is reached; what holds its content or a program in
// itself is none.
func absolute(base *url.URL, ref string) string {
	ref = strings.TrimSpace(ref)
	if strings.HasPrefix(ref, "#") {
		return ref
	}
	u, err := base.Parse(ref)
	if err != nil || u.Scheme == "data" || u.Scheme == "javascript" {
		return ""
	}
	return u.String()
}

// plainText is what a page says, a line for each block.
func plainText(doc *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.DataAtom == atom.Head:
			return
		case n.Type == html.TextNode && n.Parent != nil && n.Parent.DataAtom == atom.Pre:
			b.WriteString(n.Data)
		case n.Type == html.TextNode:
			if words := strings.Join(strings.Fields(n.Data), " "); words != "" {
				if strings.TrimLeft(n.Data, " \t\r\n") != n.Data {
					words = " " + words
				}
				if strings.TrimRight(n.Data, " \t\r\n") != n.Data {
					words += " "
				}
				b.WriteString(words)
			}
		}
		block := n.Type == html.ElementNode && breaks(n.DataAtom)
		if block {
			b.WriteByte('\n')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if block {
			b.WriteByte('\n')
		}
	}
	walk(doc)
	var out strings.Builder
	blank := true
	for l := range strings.SplitSeq(b.String(), "\n") {
		l = strings.TrimRight(l, " \t\r")
		if l == "" && blank {
			continue
		}
		blank = l == ""
		out.WriteString(l + "\n")
	}
	return strings.TrimSpace(out.String())
}

// breaks reports whether an element begins and ends a line.
func breaks(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Br, atom.Hr, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Li, atom.Dl, atom.Dt, atom.Dd, atom.Table, atom.Tr,
		atom.Pre, atom.Blockquote, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Nav, atom.Main, atom.Aside, atom.Figure, atom.Figcaption, atom.Form, atom.Details, atom.Summary, atom.Title:
		return true
	}
	return false
}

// split cuts a text into pieces that are shown at once, at ends of lines where these
// are near.
func split(text string) (pages []string) {
	for len(text) > pageBytes {
		n := pageBytes
		if i := strings.LastIndexByte(text[n-n/8:n], '\n'); i >= 0 {
			n += i + 1 - n/8
		} else {
			for n > 0 && !utf8.RuneStart(text[n]) {
				n--
			}
		}
		pages, text = append(pages, text[:n]), text[n:]
	}
	return append(pages, text)
}

// fileName is how what isn't text is called: as its address ends.
func (p *page) fileName() string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return -1
	}, path.Base(p.url.Path))
	if name = strings.Trim(name, "."); name == "" {
		name = "page"
	}
	return name[max(len(name)-60, 0):]
}
