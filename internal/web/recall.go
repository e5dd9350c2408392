package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// recallScope is a part of a session that the recall box searches.
type recallScope struct {
	name  string // in addresses
	scope session.Scope
	none  string // the text for a search without hits
}

// scopes are the parts to choose from. The first is what the model's memory_search
// searches.
var scopes = []recallScope{
	{"hidden", session.Hidden, "Nothing that is hidden from the model matches."},
	{"visible", session.Visible, "Nothing that the model sees matches."},
	{"everywhere", session.Everywhere, "Nothing in this session matches."},
}

// recallPage is the data of the results of a search in one session, or in all sessions.
type recallPage struct {
	ID    furl.SessionID // "" in a search of all sessions
	Title string         // of the session
	Query string
	Scope string
	// Instead is the query that was searched for because the given one had no hits.
	Instead string
	None    string
	Hits    []foundHit
	// More reports that there may be more hits than the page shows.
	More bool
}

// foundHit is a hit of a search.
type foundHit struct {
	session.Hit
	At      string // the block in addresses
	Excerpt template.HTML
	// In describes its session in a search of all sessions; First reports that the hit
	// before it is of another session.
	In    *listed
	First bool
}

// Why are the parts of the query that match, as text.
func (h *foundHit) Why() string {
	if len(h.Matched) == 0 {
		return "similar meaning"
	}
	return visible.Line(strings.Join(h.Matched, ", "))
}

// Where says whether the model sees the block.
func (h *foundHit) Where() string {
	switch {
	case h.OffPath:
		return "other branch"
	case h.Hit.Hidden:
		return "hidden"
	}
	return "visible"
}

// What names the block, such as "result of Read".
func (h *foundHit) What() string {
	if h.Tool != "" {
		return h.Kind + " of " + visible.Line(h.Tool)
	}
	return string(h.Role) + " " + h.Kind
}

const (
	recallHits    = 20  // hits of a search in a session
	foundHits     = 20  // hits of a search in all sessions
	recallExcerpt = 320 // length of an excerpt, in bytes
	recallContext = 140 // length of the text before and after a hit, in bytes
)

// recall searches a session as the model's memory_search does.
func (p *Page) recall(v *visit) error {
	data := &recallPage{ID: v.s.ID(), Title: v.listed(v.s.Info()).Title, Query: strings.TrimSpace(v.r.FormValue("q")), Scope: cmp.Or(v.r.FormValue("in"), scopes[0].name)}
	at := slices.IndexFunc(scopes, func(s recallScope) bool { return s.name == data.Scope })
	if at < 0 {
		return badRequest("invalid part %.20q: choose one of hidden, visible, everywhere", data.Scope)
	}
	if len(data.Query) > maxText {
		return badRequest("the text to find is longer than %d bytes", maxText)
	}
	if data.Query != "" {
		hits, err := v.s.Search(v.r.Context(), data.Query, session.SearchOptions{
			Limit: recallHits, Scope: scopes[at].scope, Excerpt: recallExcerpt, Context: recallContext, WithoutRecall: true,
		})
		if err != nil {
			return err
		}
		data.add(hits)
		data.None, data.More = scopes[at].none, len(hits) == recallHits
	}
	if v.isFragment() {
		v.render(http.StatusOK, "hits", data)
		return nil
	}
	v.render(http.StatusOK, "recall.tmpl", data)
	return nil
}

// searchAll searches all sessions.
func (p *Page) searchAll(v *visit) error {
	data := &recallPage{Query: strings.TrimSpace(v.r.FormValue("q")), Scope: "everywhere", None: "No message of any session matches."}
	since := v.r.FormValue("since")
	if _, ok := ageOf[since]; !ok && since != "" {
		return badRequest("invalid since %.20q: choose one of 1d, 7d, 30d, 90d", since)
	}
	if len(data.Query) > maxText {
		return badRequest("the text to find is longer than %d bytes", maxText)
	}
	o := session.SearchOptions{Limit: foundHits, Excerpt: recallExcerpt}
	if since != "" {
		o.Since = v.p.o.Now().Add(-ageOf[since])
	}
	if data.Query != "" {
		hits, err := v.Sessions.Search(v.r.Context(), data.Query, o)
		if err != nil {
			return err
		}
		data.add(hits)
		data.More = len(hits) == foundHits
		if err := v.describe(data); err != nil {
			return err
		}
	}
	if v.isFragment() {
		v.render(http.StatusOK, "hits", data)
		return nil
	}
	v.render(http.StatusOK, "recall.tmpl", data)
	return nil
}

// add adds hits, best first.
func (d *recallPage) add(hits []session.Hit) {
	for i := range hits {
		h := &hits[i]
		d.Instead = h.Query
		d.Hits = append(d.Hits, foundHit{Hit: *h, At: fmt.Sprintf("%d.%d", h.Pos.Msg, h.Pos.Block), Excerpt: marked(h.Excerpt, h.Matched)})
	}
}

// describe adds the sessions of hits, and puts hits of one session together in the order of
// the best hit of each.
func (v *visit) describe(d *recallPage) error {
	first := make(map[furl.SessionID]int)
	for i := range d.Hits {
		if _, ok := first[d.Hits[i].Session]; !ok {
			first[d.Hits[i].Session] = i
		}
	}
	in := make(map[furl.SessionID]*listed, len(first))
	for id := range first {
		for info, err := range v.Sessions.Store().Sessions(v.r.Context(), v.Sessions.Tenant(), storage.SessionQuery{Prefix: string(id)}) {
			if err != nil {
				return err
			}
			if info.Session == id {
				in[id] = new(v.listed(info))
			}
		}
	}
	d.Hits = slices.DeleteFunc(d.Hits, func(h foundHit) bool { return in[h.Session] == nil }) // deleted meanwhile
	slices.SortStableFunc(d.Hits, func(a, b foundHit) int { return first[a.Session] - first[b.Session] })
	for i := range d.Hits {
		d.Hits[i].In = in[d.Hits[i].Session]
		d.Hits[i].First = i == 0 || d.Hits[i].Session != d.Hits[i-1].Session
	}
	return nil
}

// shortPart is the length in bytes up to which a part is marked only as a whole word.
const shortPart = 2

// isInside reports whether letters or digits are directly before or after a part of a text.
func isInside(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return unicode.IsLetter(before) || unicode.IsDigit(before) || unicode.IsLetter(after) || unicode.IsDigit(after)
}

// maxExcerptLines is the number of lines of an excerpt that are shown.
const maxExcerptLines = 9

// fewLines returns the lines of an excerpt that are not blank, at most maxExcerptLines
// around the first match of a pattern.
func fewLines(text string, pattern *regexp.Regexp) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	if len(lines) <= maxExcerptLines {
		return strings.Join(lines, "\n")
	}
	first := max(0, slices.IndexFunc(lines, pattern.MatchString)-2)
	first = min(first, len(lines)-maxExcerptLines)
	text = strings.Join(lines[first:first+maxExcerptLines], "\n")
	if first > 0 {
		text = "…\n" + text
	}
	if first+maxExcerptLines < len(lines) {
		text += "\n…"
	}
	return text
}

// marked renders an excerpt with the parts that match marked, in any case.
func marked(text string, parts []string) template.HTML {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) }) // the longest first
	var words []string
	for _, part := range parts {
		if part != "" {
			words = append(words, regexp.QuoteMeta(part))
		}
	}
	text = printable(text)
	source := "(?i)" + strings.Join(words, "|")
	if len(words) == 0 {
		source = `[^\s\S]` // matches no text
	}
	pattern, err := regexp.Compile(source)
	if err != nil { // such as invalid UTF-8
		pattern = regexp.MustCompile(`[^\s\S]`)
	}
	text = fewLines(text, pattern)
	var b strings.Builder
	at := 0
	for _, m := range pattern.FindAllStringIndex(text, -1) {
		if m[1]-m[0] <= shortPart && isInside(text, m[0], m[1]) {
			continue
		}
		b.WriteString(template.HTMLEscapeString(text[at:m[0]]))
		b.WriteString("<mark>" + template.HTMLEscapeString(text[m[0]:m[1]]) + "</mark>")
		at = m[1]
	}
	b.WriteString(template.HTMLEscapeString(text[at:]))
	return template.HTML(b.String())
}
