// Package report renders a replay as one HTML page that needs no network:
// styles, pictures and a little script are inside it. All pictures are drawn
// here, as SVG whose horizontal measures are percentages, so that the page is
// whole without its script and fits a phone as it fits a wall.
//
// File names, models, notes and whatever else comes from recordings is text to
// the page and nothing else: it is cleaned (see clean), escaped by
// html/template for the place where it stands, and a content security policy
// forbids any script and style but the page's own, and all of the network.
package report

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/furlhq/furl/replay"
)

//go:embed page/*.tmpl page/page.css page/page.js
var files embed.FS

var (
	style  = read("page/page.css")
	script = read("page/page.js")
	pages  = template.Must(template.New("").Funcs(template.FuncMap{
		"dict":    dict,
		"columns": func() []column { return measures },
		"gapTop":  func(height int) int { return height - 9 },
	}).ParseFS(files, "page/*.tmpl"))
)

// HTML writes the page. It draws at most some dozens of recordings, and says
// which it left out; its tables have all of them up to a bound in the
// thousands. An error is one of w's own.
func HTML(w io.Writer, rep *replay.Report) error {
	if rep == nil {
		rep = new(replay.Report)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := pages.ExecuteTemplate(b, "page.tmpl", newPage(rep)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// dict makes one value of several, for templates that need more than one.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return strings.TrimSpace(string(b))
}

// policyHeader forbids everything but the page's own style and script, named
// by their hashes.
func policyHeader() string {
	return "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
