package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// says is a process that answers, and whose metrics are these.
func says(t *testing.T, metrics string) *process {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, metrics) })
	mux.Handle("/", new(dummy))
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return &process{url: srv.URL, furl: true, dir: t.TempDir()}
}

const allMetrics = "process_cpu_seconds_total 1.5\ngo_memstats_mallocs_total 100\ngo_memstats_alloc_bytes_total 2e6\nprocess_resident_memory_bytes 5e7\ngo_memstats_heap_alloc_bytes 1e6\ngo_goroutines 9\n"

// gotOf gives what a mark says it measured, and whether it is met.
func gotOf(t *testing.T, r *report, what string) (got string, met bool) {
	t.Helper()
	i := slices.IndexFunc(r.marks, func(m mark) bool { return strings.Contains(m.what, what) })
	if i < 0 {
		t.Fatalf("no mark says %q: %+v", what, r.marks)
	}
	return r.marks[i].got, r.marks[i].met
}

// A program with metrics of other names uses no memory and no time as far as
// they say: that meets no mark.
func TestWhatIsNotReadIsNotMet(t *testing.T) {
	for _, tt := range []struct {
		name, metrics, why string
		met                bool
	}{
		{"all", allMetrics, "", true},
		{"too much", strings.Replace(allMetrics, "5e7", "5e9", 1), "", false},
		{"other names", strings.NewReplacer("process_", "proc_", "go_", "golang_").Replace(allMetrics),
			"its metrics do not say go_memstats_alloc_bytes_total, go_memstats_mallocs_total, process_cpu_seconds_total, process_resident_memory_bytes", false},
		{"one is missing", strings.Replace(allMetrics, "process_resident", "resident", 1), "its metrics do not say process_resident_memory_bytes", false},
		{"zero", strings.Replace(allMetrics, "5e7", "0", 1), "its metrics do not say process_resident_memory_bytes", false},
		{"none", "", "go_memstats_alloc_bytes_total", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bench{tokenizer: 3e7}
			b.resident(2200, "one session", newTarget(passing, says(t, tt.metrics)))
			got, met := gotOf(t, &b.report, "resident")
			if met != tt.met || (got == notMeasured) != (tt.why != "") {
				t.Errorf("measured %q, met %t", got, met)
			}
			lines := strings.Join(b.notes, "\n")
			if !strings.Contains(lines, tt.why) || strings.Contains(lines, "cannot be measured") != (tt.why != "") {
				t.Errorf("said\n%s\nwant %q", lines, tt.why)
			}
			var out strings.Builder
			b.print(&out, time.Second)
			if want := map[bool]string{true: "1 of 1 limits met", false: "0 of 1 limits met"}[tt.met]; !strings.Contains(out.String(), want) {
				t.Errorf("printed\n%s\nwant %q", &out, want)
			}
			if err := b.end(0); (err == nil) != tt.met {
				t.Errorf("the run ends with %v", err)
			}
		})
	}
	if u, err := usageOf(&process{url: "http://127.0.0.1:1", furl: true}); err == nil || !math.IsNaN(u.RSS+u.CPU) {
		t.Errorf("no process listens: %+v, %v", u, err)
	}
}

// What a process used in a phase is unknown where it was before or after, or
// became less.
func TestUsageMinus(t *testing.T) {
	for _, tt := range []struct{ now, before, want float64 }{
		{3, 1, 2}, {1, 1, 0}, {1, 3, unknown}, {unknown, 1, unknown}, {1, unknown, unknown},
	} {
		if got := (usage{CPU: tt.now}).minus(usage{CPU: tt.before}).CPU; got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%v since %v: %v, want %v", tt.now, tt.before, got, tt.want)
		}
	}
}

// The times of answers whose headers say nothing are not met either.
func TestTimesThatAreNotRead(t *testing.T) {
	silent := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "an answer") })
	srv := httptest.NewServer(silent)
	defer srv.Close()
	p := says(t, allMetrics)
	ph := &phase{}
	for _, name := range []string{direct, proxied, bypassed, passing, reducing, remembering} {
		tg := newTarget(name, p)
		if name == reducing || name == remembering {
			tg = newTarget(name, &process{url: srv.URL, furl: true})
		}
		ph.targets = append(ph.targets, tg)
	}
	h := newHistory(furl.FormatAnthropic, 1, 10<<10, "m")
	if err := ph.run(2, func() [][]*request { return one(h, true) }); err != nil {
		t.Fatal(err)
	}
	r := &report{}
	r.row(57, "a step more", ph)
	r.judge(57, ph)
	r.judgeRecall(57, ph, ph)
	for what, unread := range map[string]bool{
		"57 KB: recording, time above a plain proxy":                     false,
		"57 KB: recording, time to first streamed byte":                  false,
		"reducing, total time relative to recording":                     true, // it never reduced
		"57 KB: reducing, delay of the first streamed byte":              true, // the time of sending is unknown
		"recording with recall, time to first streamed byte":             true, // memory was not searched
		"memory searched after a text, longest delay of a piece":         true,
		"57 KB: recording with recall, delay of the first":               true,
		"memory searched after a text, delay of the first streamed byte": true,
	} {
		if got, met := gotOf(t, r, what); (got == notMeasured) != unread || unread && met {
			t.Errorf("%s: measured %q, met %t", what, got, met)
		}
	}
	if lines := strings.Join(r.notes, "\n"); !strings.Contains(lines, "was not offered memory_search") || !strings.Contains(lines, "no reduction") || !strings.Contains(lines, "furl, reducing: its resource usage cannot be measured") {
		t.Errorf("said\n%s", lines)
	}
}

// A soak too short to say anything, or of a gateway that says nothing, is not
// passed.
func TestSoakThatIsNotRead(t *testing.T) {
	s := &soak{bench: &bench{}, p: says(t, strings.ReplaceAll(allMetrics, "go_goroutines", "goroutines"))}
	before := s.level(0)
	s.judge(time.Second, before, s.quiet(before))
	for _, what := range []string{"goroutines", "resident memory"} {
		if got, met := gotOf(t, &s.report, what); got != notMeasured || met {
			t.Errorf("%s: measured %q, met %t", what, got, met)
		}
	}
	if lines := strings.Join(s.notes, "\n"); !strings.Contains(lines, "too short") || !strings.Contains(lines, "go_goroutines") {
		t.Errorf("said\n%s", lines)
	}
}
