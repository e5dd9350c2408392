package readable

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/furlhq/furl/internal/look"
	"github.com/furlhq/furl/internal/numbers"
)

//go:embed page.tmpl
var pageText string

//go:embed page.css
var pageStyle string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"text":  Visible,
		"line":  func(s string) string { return Line(s, 300) },
		"role":  roleClass,
		"words": func(n int, word string) string { return numbers.Count(n, word) },
	}).Parse(pageText))
})

// roleClass returns the style class of a role.
func roleClass(who string) string {
	switch who {
	case "user", "assistant", "tool", "system", "developer":
		return who
	}
	return "other"
}

// top is the data of the page's header.
type top struct {
	*Session
	CSP      string
	Style    template.CSS
	Messages int
	Shown    int
	ViewOnly bool
	Given    []given
	Ribbon   *ribbon
	Figures  []figure
}

// HTML writes the session as one page without scripts and external resources,
// and with a policy that forbids both. Long results, calls and thinking are
// collapsed; hidden messages are dimmed and labelled with the reduction. The
// context is a strip to scale of its tokens, with the size of the prompt at each request.
func (s *Session) HTML(w io.Writer, step Step) error {
	out := bufio.NewWriterSize(w, 64<<10)
	// The checksum must cover the style exactly as in the page.
	style := "\n" + strings.TrimSpace(look.Style) + "\n" + strings.TrimSpace(pageStyle) + "\n"
	sum := sha256.Sum256([]byte(style))
	t := top{
		Session: s, Style: template.CSS(style), Messages: s.State.Len(), ViewOnly: s.View != nil, Given: s.given(),
		CSP: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
	}
	path := s.Log.Path(s.State.Head())
	t.Ribbon = s.ribbon(path)
	t.Figures = s.figures(path, t.Ribbon)
	if s.View != nil {
		t.Shown = len(s.View.Messages)
	}
	if err := page().ExecuteTemplate(out, "top", t); err != nil {
		return err
	}
	entries, total := s.entries()
	done := 0
	for e := range entries {
		if !e.empty() {
			if err := page().ExecuteTemplate(out, "entry", &e); err != nil {
				return err
			}
		}
		if done++; step != nil {
			if err := step(done, total); err != nil {
				return err
			}
		}
	}
	if err := page().ExecuteTemplate(out, "end", nil); err != nil {
		return err
	}
	return out.Flush()
}
