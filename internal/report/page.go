package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/furlhq/furl/replay"
)

// Bounds on the page, so that it stays usable with hundreds of recordings.
const (
	maxCharts  = 30     // over all windows
	minCharts  = 6      // of each window
	maxDetails = 12_000 // rows of results in the tables of recordings
	maxListed  = 5_000  // recordings in the table of all
	maxFiles   = 200    // files in unknown formats
	colors     = 10     // for policies in page.css; the first is for none
)

// page is what page.tmpl shows.
type page struct {
	CSP    string
	Style  template.CSS
	Script template.JS

	Title   string
	Subject string // what was replayed
	Notes   []string
	Panels  []panel
	Keys    []key
	Columns []column
	Idle    []string // policies that changed no request

	Recordings []recording
	Several    bool // windows
	// How many recordings the tables leave out.
	NotListed, NotDetailed int

	SkippedRecords int
	Unknown        []string
	UnknownFiles   int
	Unpriced       []string // models without a price
	Mixed          bool     // some recordings have prices and others none

	places places
}

// key is how a policy looks everywhere on the page: name, color and shape.
type key struct {
	Policy string // its name in the report
	Name   string // its name on the page
	Index  int
	Color  int // of colors
	Round  int // how many policies before it have the same color
	Shape  int // of five
}

// Class is the key as CSS classes: color, variant and index. The script finds
// the color, dash and shape of a policy by the last one.
func (k key) Class() string { return fmt.Sprintf("p%d r%d s%d", k.Color, min(k.Round, 2), k.Index) }

// panel is the charts and totals for one window.
type panel struct {
	Index    int
	Label    string
	Headline headline
	Bars     bars
	Scatters []*scatter
	Charts   []*chart
	LeftOut  int // recordings without a chart
	Totals   []row
	Matrix   []matrixRow
	Keys     []key
	Others   []key // but none

	places places
}

// matrixRow is the cost ratios of one recording.
type matrixRow struct {
	ID, File, Short, Agent, Model, Requests, None string
	Cells                                         []matrixCell // one for each of Others
}

type matrixCell struct{ Text, Class string }

func newPage(rep *replay.Report) *page {
	rep, idle := withoutIdle(rep)
	p := &page{
		Idle:    idle,
		CSP:     policyHeader(),
		Style:   template.CSS(style()),
		Script:  template.JS(script()),
		Title:   "furl replay",
		Columns: measures,
		Notes:   notes(rep.Notes, maxNotes),
		Unknown: notes(rep.Unknown, maxFiles),
	}
	if plan := rep.PlanWords(); plan != "" {
		p.Notes = append(p.Notes, clean(plan, 400))
	}
	if rep.ToolDiet != nil {
		p.Notes = append(p.Notes, clean(rep.ToolDiet.String(), 400))
	}
	if rep.Tuning != nil {
		p.Notes = append(p.Notes, clean(rep.Tuning.String(), 1000))
	}
	p.UnknownFiles = len(rep.Unknown)
	p.subject(rep)
	keys := p.keys(rep.Totals)
	windows := windowsOf(rep.Totals)
	if len(windows) == 0 {
		windows = []int{0}
	}
	p.Several = len(windows) > 1
	for i, w := range windows {
		p.Panels = append(p.Panels, p.panel(rep, i, w, len(windows), keys))
	}
	p.recordings(rep, keys)
	return p
}

// withoutIdle returns a report without the policies that changed no request, and their names.
func withoutIdle(rep *replay.Report) (*replay.Report, []string) {
	acted := make(map[string]bool)
	for i := range rep.Totals {
		if r := &rep.Totals[i]; r.Policy == none || r.Acted() {
			acted[r.Policy] = true
		}
	}
	var names []string
	idle := func(r replay.Result) bool { return !acted[r.Policy] }
	for i := range rep.Totals {
		if r := &rep.Totals[i]; idle(*r) && !slices.Contains(names, policyName(r)) {
			names = append(names, policyName(r))
		}
	}
	if len(names) == 0 {
		return rep, nil
	}
	out := *rep
	out.Totals = slices.DeleteFunc(slices.Clone(rep.Totals), idle)
	out.Recordings = slices.Clone(rep.Recordings)
	for i := range out.Recordings {
		out.Recordings[i].Results = slices.DeleteFunc(slices.Clone(out.Recordings[i].Results), idle)
	}
	return &out, names
}

// subject describes what was replayed, and collects what could not be read or
// priced.
func (p *page) subject(rep *replay.Report) {
	requests, priced := 0, 0
	files := make([]string, len(rep.Recordings))
	seen := make(map[string]bool)
	for i := range rep.Recordings {
		r := &rep.Recordings[i]
		requests += r.Requests
		files[i] = r.File
		p.SkippedRecords += r.SkippedRecords
		if len(r.Results) == 0 || r.Results[0].Cost != nil {
			priced++
		} else if m := unnamed(r.Model); !seen[m] {
			seen[m] = true
			p.Unpriced = append(p.Unpriced, m)
		}
	}
	p.places = newPlaces(files)
	p.Mixed = priced > 0 && priced < len(rep.Recordings)
	p.Subject = counted(len(rep.Recordings), "recording") + ", " + counted(requests, "request")
	if len(rep.Recordings) == 1 {
		p.Subject = name(rep.Recordings[0].File) + ", " + counted(requests, "request")
	}
}

// keys gives each policy a color and a shape. Variants of a policy, such as
// auto:frugal of auto, have its color.
func (p *page) keys(results []replay.Result) map[string]key {
	keys := make(map[string]key)
	colorOf := map[string]int{none: 0}
	used := make([]int, colors)
	for i := range results {
		policy := results[i].Policy
		if _, ok := keys[policy]; ok {
			continue
		}
		base, _, _ := strings.Cut(policy, ":")
		if _, ok := colorOf[base]; !ok {
			colorOf[base] = 1 + (len(colorOf)-1)%(colors-1)
		}
		color := colorOf[base]
		k := key{Policy: policy, Name: policyName(&results[i]), Index: len(keys), Color: color, Round: used[color], Shape: (color + 2*used[color]) % 5}
		used[color]++
		keys[policy] = k
		p.Keys = append(p.Keys, k)
	}
	return keys
}

// policyName is the name of a result's policy on the page.
func policyName(r *replay.Result) string {
	return clean(r.Label(), 40)
}

// others are all policies except none.
func others(keys []key) []key {
	return slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return k.Policy == none })
}

// windowsOf lists the windows of results, in their order.
func windowsOf(results []replay.Result) []int {
	var out []int
	for i := range results {
		if !slices.Contains(out, results[i].Window) {
			out = append(out, results[i].Window)
		}
	}
	return out
}

// within returns the results at one window.
func within(results []replay.Result, window int) []replay.Result {
	var out []replay.Result
	for i := range results {
		if results[i].Window == window {
			out = append(out, results[i])
		}
	}
	return out
}

func (p *page) panel(rep *replay.Report, index, size, windows int, keys map[string]key) panel {
	totals := within(rep.Totals, size)
	out := panel{Index: index, Label: window(size), Keys: p.Keys, Others: others(p.Keys), places: p.places}
	if size > 0 {
		out.Label += " tokens"
	}
	subject, fits := replay.Recommend(totals, size, rep.Wish)
	out.Headline = newHeadline(totals, subject, fits, rep.Wish)
	best := -1
	if fits {
		best = subject
	}
	chosen := ""
	if best >= 0 {
		chosen = totals[best].Policy
	}
	out.Bars = newBars(totals, keys, chosen)
	out.Bars.Idle = p.Idle
	out.Scatters = []*scatter{
		newScatter("Identifiers still visible", totals, keys, chosen, func(r *replay.Result) (int, int) { return r.ReferencesKept, r.References }),
		newScatter("Quoted lines still visible", totals, keys, chosen, func(r *replay.Result) (int, int) { return r.QuotedLinesKept, r.QuotedLines }),
	}
	for i := range totals {
		out.Totals = append(out.Totals, newRow(&totals[i], keys, i == best))
	}
	bestFirst(out.Totals)
	out.charts(rep, size, max(minCharts, maxCharts/windows), keys, chosen)
	if len(rep.Recordings) > 1 { // the totals of a single one are its ratios
		for i := range rep.Recordings[:min(len(rep.Recordings), maxListed)] {
			out.Matrix = append(out.Matrix, p.matrixRow(i, &rep.Recordings[i], size))
		}
	}
	return out
}

// charts adds charts of the recordings in which the policies differ most, and of
// those the ones with most requests.
func (p *panel) charts(rep *replay.Report, size, most int, keys map[string]key, best string) {
	type candidate struct{ recording, requests, spread int }
	var list []candidate
	for i := range rep.Recordings {
		results := within(rep.Recordings[i].Results, size)
		if session, _ := longest(results); session >= 0 {
			n := 0
			for j := range results {
				n = max(n, len(at(results[j].Series, session).Points))
			}
			list = append(list, candidate{i, n, spread(results, session)})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.spread, a.spread), cmp.Compare(b.requests, a.requests))
	})
	for _, c := range list[:min(len(list), most)] {
		rec := &rep.Recordings[c.recording]
		id := fmt.Sprintf("c%d-%d", p.Index, c.recording)
		p.Charts = append(p.Charts, newChart(id, p.places.name(rec.File), rec, within(rec.Results, size), keys, best))
	}
	p.LeftOut = len(rep.Recordings) - len(p.Charts)
}

// spread is how many tokens more the policy that sends most sends than the one that
// sends least, over one session: the area between their lines.
func spread(results []replay.Result, session int) int {
	least, most := math.MaxInt, 0
	for i := range results {
		sum := 0
		for _, p := range at(results[i].Series, session).Points {
			sum += min(bounded(p.Tokens), math.MaxInt32)
		}
		least, most = min(least, sum), max(most, sum)
	}
	return most - least
}

func (p *page) matrixRow(i int, rec *replay.RecordingReport, size int) matrixRow {
	m := matrixRow{
		ID: fmt.Sprintf("r%d", i), File: name(rec.File), Short: p.places.name(rec.File), Agent: orUnknown(rec.Agent), Model: orUnknown(rec.Model),
		Requests: count(rec.Requests), None: "–",
	}
	results := within(rec.Results, size)
	for _, k := range others(p.Keys) {
		cell := matrixCell{"–", "na"}
		if j := find(results, k.Policy); j >= 0 {
			cell = matrixCell{ratio(results[j].CostShare), heat(results[j].CostShare)}
		}
		m.Cells = append(m.Cells, cell)
	}
	if j := find(results, none); j >= 0 {
		m.None = cost(results[j].Total())
	}
	return m
}

// recordings makes the tables of single recordings, up to the bounds.
func (p *page) recordings(rep *replay.Report, keys map[string]key) {
	rows := 0
	for i := range rep.Recordings {
		rec := &rep.Recordings[i]
		if i >= maxListed {
			p.NotListed = len(rep.Recordings) - i
			break
		}
		r := newRecording(i, p.places.name(rec.File), rec)
		if len(rep.Recordings) == 1 && !p.Several {
			r.Open = true // and the totals are its measures
		} else if rows += len(rec.Results); rows <= maxDetails {
			for _, w := range windowsOf(rec.Results) {
				results := within(rec.Results, w)
				best, fits := replay.Recommend(results, w, rep.Wish)
				for j := range results {
					r.Rows = append(r.Rows, newRow(&results[j], keys, fits && j == best))
				}
				bestFirst(r.Rows[len(r.Rows)-len(results):])
			}
		} else {
			p.NotDetailed++
		}
		p.Recordings = append(p.Recordings, r)
	}
}
