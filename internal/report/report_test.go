package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"

	"github.com/furlhq/furl/replay"
)

func render(t testing.TB, rep *replay.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, rep); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parse(t testing.TB, page string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// text gives the words of an element.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// elements finds elements of a kind that have a class; "" is any.
func elements(root *html.Node, tag, class string) []*html.Node {
	var out []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && (tag == "" || n.Data == tag) && (class == "" || hasClass(n, class)) {
			out = append(out, n)
		}
	}
	return out
}

func hasClass(n *html.Node, class string) bool {
	return slices.Contains(strings.Fields(attr(n, "class")), class)
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func TestPageSaysItInWords(t *testing.T) {
	root := parse(t, render(t, sample(3, 120)))
	h1 := text(elements(root, "h1", "")[0])
	if want := "auto would have cut the cost by 37% and kept 95.0% of the reused identifiers visible."; h1 != want {
		t.Errorf("headline: %q, want %q", h1, want)
	}
	for _, class := range []string{"tiles", "bars", "scatters", "timeline", "totals", "matrix", "details", "method"} {
		if len(elements(root, "", class)) == 0 {
			t.Errorf("nothing of class %q", class)
		}
	}
	if n := len(elements(root, "figure", "chart")); n != 3 {
		t.Errorf("%d charts of the prompt size, want 3", n)
	}
	charts := elements(root, "figure", "chart")
	var drawn timeline
	embedded(t, charts[0], &drawn)
	if len(drawn.Lines) != 6 || drawn.Requests != 120 {
		t.Errorf("%d lines over %d requests in a chart, want one per policy over 120", len(drawn.Lines), drawn.Requests)
	}
	if l := drawn.Lines[4]; l.Name != "auto" || l.Count == 0 || len(l.Reductions) != 3*l.Count || l.Stages[0] != "mask" {
		t.Errorf("the line of auto has %d reductions, %d embedded, by %q", l.Count, len(l.Reductions)/3, l.Stages)
	}
	tables := elements(charts[0], "table", "")
	if len(tables) != 2 || len(elements(tables[0], "tr", "")) != 1+6 || !strings.Contains(text(tables[1]), "mask") {
		t.Error("a chart lacks the tables with its numbers and with its largest reductions")
	}
	var dots []dot
	embedded(t, elements(root, "figure", "scatter")[0], &dots)
	if len(dots) != 6 || dots[0].Name != "auto:frugal" || dots[0].CostText != "0.62×" || dots[0].KeptText != "93.8% (375 of 400)" {
		t.Errorf("the dots are %+v", dots)
	}
	if n := len(elements(root, "details", "rec")); n != 3 {
		t.Errorf("%d recordings unfold, want 3", n)
	}
	for _, m := range measures {
		if !strings.Contains(text(elements(root, "section", "method")[0]), m.About) {
			t.Errorf("measure %q is not explained", m.Name)
		}
	}
}

// embedded parses the JSON in a figure.
func embedded(t testing.TB, figure *html.Node, into any) {
	t.Helper()
	data := elements(figure, "script", "")
	if len(data) != 1 || attr(data[0], "type") != "application/json" {
		t.Fatalf("%d scripts in a figure, want its data", len(data))
	}
	if err := json.Unmarshal([]byte(data[0].FirstChild.Data), into); err != nil {
		t.Fatal(err)
	}
}

func TestHeadline(t *testing.T) {
	x := func(f float64) *float64 { return &f }
	all := replay.Result{Policy: none, Requests: 10, Cost: x(10), CostShare: x(1), References: 100, ReferencesKept: 100}
	cases := []struct {
		name    string
		totals  []replay.Result
		want    string
		further string
	}{
		{"no recordings", nil, "Nothing was replayed.", ""},
		{"one that keeps all", []replay.Result{all, {Policy: "auto", Cost: x(6), CostShare: x(0.5), References: 100, ReferencesKept: 100}},
			"auto would have cut the cost by 50% and kept all reused identifiers visible.", ""},
		{"cheap but forgetful", []replay.Result{all, {Policy: "amnesia", Cost: x(2), CostShare: x(0.2), References: 100, ReferencesKept: 60}},
			"No policy that costs less than as recorded keeps 95% of the identifiers and 75% of the quoted lines visible, with at most 10% of the edits blind.",
			"None is recommended. The closest, amnesia, would have cut the cost by 80% and kept 60.0% of the reused identifiers visible."},
		{"nothing cheaper", []replay.Result{all, {Policy: "mask", Cost: x(12), CostShare: x(1.2)}}, "No policy would have cut the cost.", ""},
		{"refused requests don't count as cheap", []replay.Result{all, {Policy: "broken", Cost: x(1), CostShare: x(0.1), InvalidRequests: 1}},
			"No policy would have cut the cost.", ""},
		{"no prices", []replay.Result{{Policy: none, CostShare: x(1)}, {Policy: "mask", CostShare: x(0.75)}},
			"mask would have cut the tokens sent by 25%.", ""},
		{"nothing to compare", []replay.Result{{Policy: "mask"}}, "There are no costs to compare.", ""},
		{"everything does not fit", []replay.Result{{Policy: none, Requests: 50, Overflows: 7, Impossible: 1, CostShare: x(1)}, {Policy: "mask", Requests: 50, CostShare: x(0.75)}},
			"mask would have fit 50 requests into the context window.", "As recorded, 8 of 50 requests do not fit the context window."},
		{"everything does not fit, and what does forgets", []replay.Result{{Policy: none, Requests: 50, Overflows: 8, CostShare: x(1)}, {Policy: "mask", Requests: 50, CostShare: x(0.75), References: 10, ReferencesKept: 5}},
			"As recorded, 8 of 50 requests do not fit the context window.", "50 42 as recorded"},
		{"dearer, but it fits", []replay.Result{{Policy: none, Requests: 50, Overflows: 8, Cost: x(1), OverflowCost: 3, CostShare: x(1)}, {Policy: "mask", Requests: 50, Cost: x(5), CostShare: x(1.25)}},
			"mask would have fit 50 requests into the context window.", "$5.00 $4.00 as recorded"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := parse(t, render(t, &replay.Report{Totals: c.totals}))
			got := ""
			if h := elements(root, "h1", ""); len(h) > 0 {
				got = text(h[0])
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if section := text(elements(root, "section", "headline")[0]); !strings.Contains(section, c.further) {
				t.Errorf("%q is missing from %q", c.further, section)
			}
		})
	}
}

func TestNilReport(t *testing.T) {
	if page := render(t, nil); !strings.Contains(page, "Nothing was replayed") {
		t.Error("an empty report does not say so")
	}
}

type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("no space left")

func TestWriteErrors(t *testing.T) {
	rep := sample(2, 50)
	for _, left := range []int{0, 1 << 10, 70_000} {
		if err := HTML(&brokenWriter{left}, rep); !errors.Is(err, errFull) {
			t.Errorf("with room for %d bytes: got %v", left, err)
		}
	}
}

func TestSameReportSamePage(t *testing.T) {
	first := render(t, sample(3, 80, 0, 32_000))
	if second := render(t, sample(3, 80, 0, 32_000)); first != second {
		t.Error("two pages of one report differ")
	}
}

// The page is bounded whatever comes.
func TestManyRecordings(t *testing.T) {
	cases := []struct {
		name                 string
		recordings, requests int
		windows              []int
	}{
		{"hundreds of recordings", 500, 60, []int{0, 32_000}},
		{"long sessions", 8, 10_000, []int{0}},
		{"many windows", 40, 200, []int{0, 8_000, 16_000, 32_000, 64_000, 128_000, 200_000, 1_000_000}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rep := sample(c.recordings, c.requests, c.windows...)
			begin := time.Now()
			page := render(t, rep)
			t.Logf("%d bytes in %v", len(page), time.Since(begin))
			if len(page) > 10_000_000 {
				t.Errorf("%d bytes", len(page))
			}
			// BenchmarkHTML says how long it takes; the race detector and
			// other tests multiply that.
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("took %v", took)
			}
			root := parse(t, page)
			for i, n := range elements(root, "section", "timeline") {
				if charts := len(elements(n, "figure", "chart")); charts < minCharts || charts > maxCharts {
					t.Errorf("window %d: %d charts", i, charts)
				}
			}
			for _, n := range elements(root, "figure", "chart") {
				var drawn timeline
				embedded(t, n, &drawn)
				for _, l := range drawn.Lines {
					if len(l.Tokens) > maxPoints+2 || len(l.Reductions) > 3*maxPoints {
						t.Fatalf("a line of %d points and %d reductions", len(l.Tokens), len(l.Reductions)/3)
					}
				}
			}
		})
	}
}

// hostile is in every text of a report.
const hostile = "</style></script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>" +
	"{{.}}<!--]]>`${alert(3)}`javascript:alert(4)\x00\x1b[31m\r\u202e\u2066\u200f\ufeff\u2028\u2029\xff&amp;&#60;"

// hostileSample is a report with hostile in every text.
func hostileSample() *replay.Report {
	rep := sample(3, 30, 0, 64_000)
	rep.Notes, rep.Unknown = []string{hostile}, []string{hostile, "/tmp/" + hostile}
	spoil := func(r *replay.Result) {
		r.InvalidRequests, r.FirstRefusal = 1, hostile
		if r.Policy != none {
			r.Policy += hostile
		}
		for i := range r.Series {
			r.Series[i].Session = hostile
			for j := range r.Series[i].Points {
				if len(r.Series[i].Points[j].Reduced) > 0 {
					r.Series[i].Points[j].Reduced = []string{hostile}
				}
			}
		}
	}
	for i := range rep.Recordings {
		rec := &rep.Recordings[i]
		rec.File, rec.Format, rec.Agent, rec.Model = hostile, hostile, hostile, hostile
		rec.Notes, rec.Skipped, rec.SkippedRecords = []string{hostile}, []string{hostile}, 1
		for j := range rec.Results {
			spoil(&rec.Results[j])
			if i == 0 {
				rec.Results[j].Cost = nil
			}
		}
	}
	for i := range rep.Totals {
		spoil(&rep.Totals[i])
	}
	return rep
}

// Nothing from a recording is anything but text.
func TestHostileTexts(t *testing.T) {
	page := render(t, hostileSample())
	assertInert(t, page)
	if !strings.Contains(text(parse(t, page)), "<script>alert(1)</script>") {
		t.Error("the text itself is not shown")
	}
}

// assertInert fails if anything on the page could run, load or mislead, but
// the page's own script and style.
func assertInert(t *testing.T, page string) {
	t.Helper()
	allowed := map[string]bool{
		"html": true, "head": true, "meta": true, "title": true, "style": true, "script": true, "body": true, "a": true, "header": true, "p": true,
		"main": true, "fieldset": true, "legend": true, "label": true, "input": true, "span": true, "div": true, "section": true, "h1": true, "h2": true,
		"h3": true, "h4": true, "b": true, "dl": true, "dt": true, "dd": true, "strong": true, "ul": true, "li": true, "svg": true, "g": true, "rect": true,
		"path": true, "line": true, "small": true, "text": true, "em": true, "figure": true, "figcaption": true,
		"select": true, "option": true, "button": true, "table": true, "thead": true, "tbody": true, "tr": true, "th": true, "td": true,
		"details": true, "summary": true, "bdi": true, "q": true, "code": true,
	}
	scripts, styles := 0, 0
	for n := range parse(t, page).Descendants() {
		switch n.Type {
		case html.CommentNode:
			t.Errorf("a comment: %q", n.Data)
		case html.TextNode:
			inScript := n.Parent.DataAtom == atom.Script || n.Parent.DataAtom == atom.Style
			if i := strings.IndexFunc(n.Data, invisible); i >= 0 && !inScript {
				t.Errorf("%q in a text", []rune(n.Data[i:])[0])
			}
		case html.ElementNode:
			if !allowed[n.Data] {
				t.Errorf("an element %s", n.Data)
			}
			for _, a := range n.Attr {
				key := strings.ToLower(a.Key)
				if strings.HasPrefix(key, "on") || key == "style" || key == "src" || key == "srcset" || key == "action" || key == "formaction" || key == "xlink:href" {
					t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
				}
				if key == "href" && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("a link to %q", a.Val)
				}
				if i := strings.IndexFunc(a.Val, invisible); i >= 0 {
					t.Errorf("%q in %s of %s", []rune(a.Val[i:])[0], a.Key, n.Data)
				}
			}
			switch n.DataAtom {
			case atom.Script:
				if attr(n, "type") == "application/json" { // not run
					assertInertData(t, n.FirstChild.Data)
				} else if scripts++; n.FirstChild.Data != script() {
					t.Errorf("a script that is not the page's: %.100q", n.FirstChild.Data)
				}
			case atom.Style:
				if styles++; n.FirstChild.Data != style() {
					t.Errorf("a style that is not the page's: %.100q", n.FirstChild.Data)
				}
			}
		}
	}
	if scripts != 1 || styles != 1 {
		t.Errorf("%d scripts and %d styles, want one of each", scripts, styles)
	}
}

// assertInertData fails if data that is embedded for the script is not JSON, or
// contains anything that HTML or JavaScript could take for markup.
func assertInertData(t *testing.T, data string) {
	t.Helper()
	if !json.Valid([]byte(data)) {
		t.Errorf("the data is not JSON: %.100q", data)
	}
	if i := strings.IndexAny(data, "<>&\u2028\u2029"); i >= 0 {
		t.Errorf("%q in the data", data[i:min(len(data), i+20)])
	}
	if i := strings.IndexFunc(data, invisible); i >= 0 {
		t.Errorf("%q in the data", []rune(data[i:])[0])
	}
}

func invisible(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r))
}

// The policy names the very script and style on the page, and nothing else.
func TestContentSecurityPolicy(t *testing.T) {
	root := parse(t, render(t, sample(1, 20)))
	policy := ""
	for _, m := range elements(root, "meta", "") {
		if attr(m, "http-equiv") == "Content-Security-Policy" {
			policy = attr(m, "content")
		}
	}
	inline := func(tag string) string {
		for _, n := range elements(root, tag, "") {
			if attr(n, "type") != "application/json" {
				return hash(n.FirstChild.Data)
			}
		}
		return ""
	}
	want := "default-src 'none'; style-src " + inline("style") + "; script-src " + inline("script") + "; base-uri 'none'; form-action 'none'"
	if policy != want {
		t.Errorf("got  %s\nwant %s", policy, want)
	}
}

// References within the page lead somewhere, and no id is used twice.
func TestLinksWithinThePage(t *testing.T) {
	root := parse(t, render(t, sample(4, 40, 0, 32_000)))
	ids := make(map[string]bool)
	for n := range root.Descendants() {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements with id %s", id)
			}
			ids[id] = true
		}
	}
	for _, a := range elements(root, "a", "") {
		if to := strings.TrimPrefix(attr(a, "href"), "#"); !ids[to] {
			t.Errorf("a link to #%s, which is not there", to)
		}
	}
	for _, o := range elements(root, "option", "") {
		if !ids[attr(o, "value")] {
			t.Errorf("a choice of %s, which is not there", attr(o, "value"))
		}
	}
}

// Whatever numbers and texts a report holds, the page is whole and inert.
func TestAnyReport(t *testing.T) {
	number := rapid.OneOf(rapid.IntRange(-3, 300_000), rapid.SampledFrom([]int{math.MinInt, math.MaxInt, 0}))
	amount := rapid.OneOf(rapid.Float64Range(-1, 50), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.MaxFloat64}))
	words := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", none, "auto", hostile}))
	point := rapid.Custom(func(t *rapid.T) replay.Point {
		return replay.Point{Tokens: number.Draw(t, "tokens"), Freed: number.Draw(t, "freed"),
			Reduced: rapid.SliceOfN(words, 0, 2).Draw(t, "reduced"), Refused: rapid.Bool().Draw(t, "refused"),
			At: time.Unix(rapid.Int64Range(-1e12, 1e12).Draw(t, "at"), 0)}
	})
	result := rapid.Custom(func(t *rapid.T) replay.Result {
		r := replay.Result{Policy: words.Draw(t, "policy"), Window: number.Draw(t, "window"), Requests: number.Draw(t, "requests"),
			TokensSent: number.Draw(t, "sent"), Peak: number.Draw(t, "peak"), References: number.Draw(t, "refs"), ReferencesKept: number.Draw(t, "kept"),
			QuotedLines: number.Draw(t, "lines"), QuotedLinesKept: number.Draw(t, "lines kept"), InvalidRequests: number.Draw(t, "invalid"),
			FirstRefusal: words.Draw(t, "refusal"), Split: replay.CostSplit{CacheRead: amount.Draw(t, "read"), Own: amount.Draw(t, "own")}}
		if rapid.Bool().Draw(t, "priced") {
			cost, ratio := amount.Draw(t, "cost"), amount.Draw(t, "ratio")
			r.Cost, r.CostShare = &cost, &ratio
		}
		for range rapid.IntRange(0, 2).Draw(t, "series") {
			r.Series = append(r.Series, replay.Series{Window: number.Draw(t, "limit"), Points: rapid.SliceOfN(point, 0, 5).Draw(t, "points")})
		}
		return r
	})
	rapid.Check(t, func(rt *rapid.T) {
		rep := &replay.Report{Totals: rapid.SliceOfN(result, 0, 4).Draw(rt, "totals"), Notes: rapid.SliceOfN(words, 0, 2).Draw(rt, "notes")}
		for range rapid.IntRange(0, 3).Draw(rt, "recordings") {
			rep.Recordings = append(rep.Recordings, replay.RecordingReport{File: words.Draw(rt, "file"), Model: words.Draw(rt, "model"),
				Requests: number.Draw(rt, "requests"), Skipped: rapid.SliceOfN(words, 0, 2).Draw(rt, "skipped"),
				Results: rapid.SliceOfN(result, 0, 4).Draw(rt, "results")})
		}
		var b bytes.Buffer
		if err := HTML(&b, rep); err != nil {
			rt.Fatal(err)
		}
		if page := strings.Replace(b.String(), script(), "", 1); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
			rt.Fatal("the page is not whole, or has text that is not a number")
		}
		assertInert(t, b.String())
	})
}

func BenchmarkHTML(b *testing.B) {
	rep := sample(300, 200, 0, 32_000, 128_000)
	for b.Loop() {
		if err := HTML(new(bytes.Buffer), rep); err != nil {
			b.Fatal(err)
		}
	}
}

// What a tuning chose is what the page is about.
func TestTuning(t *testing.T) {
	rep := sample(2, 40)
	before := text(elements(parse(t, render(t, rep)), "main", "")[0])
	rep.Wish = replay.Wish{Names: 0.96, Lines: 0.75}
	rep.Tuning = &replay.Tuning{
		Wish: rep.Wish, Chosen: "clear-100k", Sure: 150, Resamples: 200,
		Settings: []replay.Setting{{Policy: "clear-100k", Outcome: replay.Outcome{Cost: 0.81, Names: 0.96, Lines: 0.82}, Front: true}},
		HeldOut: &replay.HeldOut{
			Projects: []replay.HeldProject{{Fits: true}, {Chosen: "auto"}, {}},
			Pooled:   replay.Outcome{Cost: 0.5, Names: 0.97, Lines: 0.9, Blind: 0.1},
			Least:    replay.Outcome{Cost: 0.3, Names: 0.91, Lines: 0.8}, Most: replay.Outcome{Cost: 1, Names: 1, Lines: 1, Blind: 0.2},
		},
	}
	after := text(elements(parse(t, render(t, rep)), "main", "")[0])
	for _, want := range []string{
		"Cheapest policy that keeps 96% of the identifiers and 75% of the quoted lines visible, with at most 10% of the edits blind: clear-100k, 81% of the cost as recorded (chosen and measured on the same recordings).",
		"Only 150 of 200 random samples",
		"measured on each in turn (3 projects): 50% of the cost as recorded (30% to 100%), 97% of the identifiers (91% to 100%), 90% of the quoted lines (80% to 100%), 10% of the edits blind (0% to 20%). " +
			"The choice is within these limits in 1 project. Where the others have none (1 project), the recordings count as they are.",
		"clear-100k would have cut the cost by",
	} {
		if !strings.Contains(after, want) || strings.Contains(before, want) {
			t.Errorf("the page with a tuning should have, and that without one lack, %q", want)
		}
	}
}

// The first chart is of the recording in which the policies differ most.
func TestFirstChart(t *testing.T) {
	rep := &replay.Report{}
	for i, sizes := range [][2]int{{100_000, 100_000}, {90_000, 40_000}, {50_000, 45_000}} {
		rec := replay.RecordingReport{File: fmt.Sprintf("/r/%d.jsonl", i), Requests: 2}
		for p, policy := range []string{none, "auto"} {
			points := []replay.Point{{Tokens: 10_000}, {Tokens: sizes[p]}}
			rec.Results = append(rec.Results, replay.Result{Policy: policy, Series: []replay.Series{{Points: points}}})
		}
		rep.Recordings = append(rep.Recordings, rec)
	}
	rep.Totals = rep.Recordings[0].Results
	var got []string
	for _, option := range elements(parse(t, render(t, rep)), "option", "") {
		got = append(got, attr(option, "value"))
	}
	if want := []string{"c0-1", "c0-2", "c0-0"}; !slices.Equal(got, want) {
		t.Errorf("charts %v, want %v", got, want)
	}
}
