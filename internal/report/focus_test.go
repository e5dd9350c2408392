package report

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/replay"
)

// lateSample is a report of one recording in which the policies differ only from request 150
// to the last, 200.
func lateSample() *replay.Report {
	rep := sample(1, 200)
	results := rep.Recordings[0].Results
	for i := range results {
		for j := range 149 {
			results[i].Series[0].Points[j] = results[0].Series[0].Points[j]
		}
	}
	return rep
}

// A chart opens on the requests in which the policies differ.
func TestFocus(t *testing.T) {
	for _, c := range []struct {
		name     string
		rep      *replay.Report
		from, to int
	}{
		{"everywhere", sample(1, 200), 0, 0},
		{"at the end", lateSample(), 146, 200},
		{"few requests", sample(1, 8), 0, 0},
	} {
		chart := newPage(c.rep).Panels[0].Charts[0]
		if chart.Timeline.From != c.from || chart.Timeline.To != c.to {
			t.Errorf("%s: opens on requests %d to %d, want %d to %d", c.name, chart.Timeline.From, chart.Timeline.To, c.from, c.to)
		}
	}
	same := sample(1, 100)
	results := same.Recordings[0].Results
	for i := range results {
		results[i].Series = results[0].Series
	}
	if chart := newPage(same).Panels[0].Charts[0]; chart.Timeline.From != 0 {
		t.Errorf("without a difference: opens on request %d, want all", chart.Timeline.From)
	}
}

// Part has the charts of the page, and no heading of the first level.
func TestPart(t *testing.T) {
	var b strings.Builder
	if err := Part(&b, lateSample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<h2 class="outcome">`, `class="barlist"`, `class="scatters"`, `"from":146`, "where the policies differ", `id="totals0"`, `id="method"`, `class="tip"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the part of a page does not have %s", want)
		}
	}
	for _, not := range []string{"<h1", "<style", "style=", "<script>", "<html"} {
		if strings.Contains(b.String(), not) {
			t.Errorf("the part of a page has %s", not)
		}
	}
}

func TestBrowserFocus(t *testing.T) {
	b := browsertest.Open(t, []byte(render(t, lateSample())))
	b.Drawn()
	if got := zoomed(b); got[0] != 146 || got[1] != 200 {
		t.Errorf("the chart opens on requests %v, want 146 to 200", got)
	}
	browsertest.Eval[any](b, `document.querySelector('[data-whole]').click()`)
	b.Drawn()
	if got := zoomed(b); got[0] != 1 || got[1] != 200 {
		t.Errorf("the whole chart shows requests %v", got)
	}
	if browsertest.Eval[bool](b, `document.querySelector('.focus') !== null`) {
		t.Error("the chart still says that it shows a part")
	}
	b.Silent()
}
