// Package report renders a replay as one HTML page that works from disk,
// without a network. Texts, tables and bars are HTML. The page's script draws
// the two charts (cost against what stayed visible, and prompt size over time)
// with uPlot, from JSON in the page. Another page can have the same charts:
// Part renders them, and Style and Script are what they need.
//
// File names, models, notes and all else that comes from recordings is text:
// it is cleaned (see clean) and html/template escapes it for its context, JSON
// included. A content security policy forbids any other script and style, and
// the network.
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
	"sync"

	"github.com/furlhq/furl/internal/look"
	"github.com/furlhq/furl/internal/uplot"
	"github.com/furlhq/furl/replay"
)

//go:embed page/*.tmpl page/*.css page/*.js
var files embed.FS

var (
	style  = sync.OnceValue(func() string { return look.Style + "\n" + Style() + "\n" + read("page/page.css") })
	script = sync.OnceValue(func() string { return Script() + "\n" + read("page/page.js") })
	pages  = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("").Funcs(template.FuncMap{
			"dict":    dict,
			"columns": func() []column { return measures },
		}).ParseFS(files, "page/*.tmpl"))
	})
)

// Style returns the style sheet of charts and their tables. It follows look.Style.
func Style() string { return uplot.Style + "\n" + read("page/charts.css") }

// Script returns a script that draws charts and makes their tables sortable, in a page that
// has a Part. It is a classic script, to be run after the page's elements are there.
func Script() string {
	return strings.Join([]string{
		strings.TrimSpace(uplot.Script()), read("page/plot.js"), read("page/timeline.js"), read("page/scatter.js"), read("page/tables.js"),
	}, "\n")
}

// Part writes what a page shows of a replay: the outcome, bars, charts and measures, and how
// they are measured. Its headings start at the second level. It only fails if w does.
func Part(w io.Writer, rep *replay.Report) error {
	p := newPage(rep)
	for i := range p.Panels {
		p.Panels[i].Headline.Part = true
	}
	if err := pages().ExecuteTemplate(w, "part", p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// HTML writes the page. It has charts of the 30 recordings in which the
// policies differ most, and tables of up to 5,000 recordings; it says how many it leaves
// out. It only fails if w does.
func HTML(w io.Writer, rep *replay.Report) error {
	if rep == nil {
		rep = new(replay.Report)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := pages().ExecuteTemplate(b, "page.tmpl", newPage(rep)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// dict makes a map of keys and values, for templates that take several values.
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

// policyHeader is the content security policy. It allows only the page's style
// and script, by their hashes.
func policyHeader() string {
	return "default-src 'none'; style-src " + hash(style()) + "; script-src " + hash(script()) +
		"; base-uri 'none'; form-action 'none'"
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
