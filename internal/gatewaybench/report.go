package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// report collects what is to be said.
type report struct {
	rows  []string
	notes []string
	marks []mark
}

// mark is one of the things that furl is held to.
type mark struct {
	what, want, got string
	met             bool
}

func (r *report) mark(met bool, what, want, format string, args ...any) {
	r.marks = append(r.marks, mark{what, want, fmt.Sprintf(format, args...), met})
}

// row adds a phase to the table.
func (r *report) row(kb int, name string, ph *phase) {
	for _, t := range ph.targets {
		s := ph.by[t.name]
		cells := []string{fmt.Sprintf("%d KB", kb), name, t.name, fmt.Sprint(len(s.samples)),
			ms(s.quantile(0.5, total)), ms(s.quantile(0.99, total)), ms(s.quantile(0.5, first)), ms(s.quantile(0.5, relay)), "", "", ""}
		if t.name != direct {
			cells[8] = fmt.Sprintf("%.2f", s.per(s.used.CPU)*1000)
			cells[9] = fmt.Sprintf("%.0f", s.per(s.used.Allocs))
			cells[10] = fmt.Sprintf("%.0f", s.per(s.used.Bytes)/1024)
		}
		reductions, noted := 0, ""
		for i := range s.samples {
			reductions += s.samples[i].reductions
			if s.samples[i].note != "" {
				noted = s.samples[i].note
			}
		}
		cells = append(cells, fmt.Sprint(reductions))
		r.rows = append(r.rows, strings.Join(cells, "\t"))
		if noted != "" {
			r.notes = append(r.notes, fmt.Sprintf("%d KB, %s, %s: %s", kb, name, t.name, noted))
		}
	}
}

// above are the marks for what furl may add to a plain proxy, in milliseconds.
func above(kb int) float64 {
	switch {
	case kb <= 100:
		return 1
	case kb <= 600:
		return 5
	}
	return 20
}

func asMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// judge holds the growing conversation to the marks.
func (r *report) judge(kb int, ph *phase) {
	proxy, pass, reduce := ph.by[proxied], ph.by[passing], ph.by[reducing]
	p50 := asMS(pass.quantile(0.5, total) - proxy.quantile(0.5, total))
	r.mark(p50 <= above(kb), fmt.Sprintf("%d KB: recording, above a plain proxy, p50", kb), fmt.Sprintf("≤ %g ms", above(kb)), "%.2f ms", p50)
	alone := asMS(ph.by[bypassed].quantile(0.5, total) - proxy.quantile(0.5, total))
	r.mark(alone <= above(kb), fmt.Sprintf("%d KB: left alone, above a plain proxy, p50", kb), fmt.Sprintf("≤ %g ms", above(kb)), "%.2f ms", alone)
	p99, most := asMS(pass.quantile(0.99, total)), 3*asMS(proxy.quantile(0.99, total))
	r.mark(p99 <= most, fmt.Sprintf("%d KB: recording, p99", kb), fmt.Sprintf("≤ %.1f ms (3 × the proxy's)", most), "%.1f ms", p99)
	twice := asMS(reduce.quantile(0.5, total)) / asMS(pass.quantile(0.5, total))
	r.mark(twice <= 2, fmt.Sprintf("%d KB: reducing, of recording's total, p50", kb), "≤ 2 ×", "%.2f ×", twice)
	r.relays(fmt.Sprintf("%d KB", kb), ph)
	if kb <= 100 {
		for _, s := range []struct {
			name string
			s    *series
		}{{"recording", pass}, {"reducing", reduce}} {
			d := asMS(s.s.quantile(0.5, first) - proxy.quantile(0.5, first))
			r.mark(d <= 2, fmt.Sprintf("%d KB: %s, first streamed byte from the request on, above the proxy, p50", kb, s.name), "≤ 2 ms", "%.2f ms", d)
		}
	}
}

// relays holds the way of the first streamed byte back to the mark.
func (r *report) relays(what string, ph *phase) {
	d := asMS(ph.by[reducing].quantile(0.5, relay) - ph.by[proxied].quantile(0.5, relay))
	r.mark(d <= 2, what+": reducing, the way of the first streamed byte back, above the proxy, p50", "≤ 2 ms", "%.2f ms", d)
}

func (r *report) judgeFormat(kb int, name string, stream bool, ph *phase) {
	d := asMS(ph.by[passing].quantile(0.5, total) - ph.by[proxied].quantile(0.5, total))
	how := "streamed"
	if !stream {
		how = "not streamed"
	}
	r.mark(d <= above(kb), fmt.Sprintf("%d KB, %s, %s: recording, above a plain proxy, p50", kb, name, how), fmt.Sprintf("≤ %g ms", above(kb)), "%.2f ms", d)
	twice := asMS(ph.by[reducing].quantile(0.5, total)) / asMS(ph.by[passing].quantile(0.5, total))
	r.mark(twice <= 2, fmt.Sprintf("%d KB, %s, %s: reducing, of recording's total, p50", kb, name, how), "≤ 2 ×", "%.2f ×", twice)
	if stream {
		r.relays(fmt.Sprintf("%d KB, %s", kb, name), ph)
	}
}

// idle is after what time without requests furl has given back the memory that
// it does not need.
const idle = gathered + 3*time.Second

// memory notes what the gateways have in memory, and holds the largest bodies
// to the marks.
func (b *bench) memory(kb int, when string, w *ways) {
	const mb = 1 << 20
	time.Sleep(idle)
	for _, t := range w.targets {
		if !t.p.furl {
			continue
		}
		u, err := usageOf(t.p)
		if err != nil {
			continue
		}
		m, _ := scrape(t.p.url)
		b.notes = append(b.notes, fmt.Sprintf("%d KB, %s, %s: %.0f MB resident, of it %.0f MB of objects; the vocabulary alone takes %.0f MB resident",
			kb, when, t.name, u.RSS/mb, m["go_memstats_heap_alloc_bytes"]/mb, b.tokenizer/mb))
		if kb < 2000 || t.bypass {
			continue
		}
		met := u.RSS <= 160*mb && u.RSS-b.tokenizer <= 60*mb
		b.mark(met, fmt.Sprintf("resident after the runs with %d KB, %s, %s", kb, when, t.name),
			"≤ 60 MB above the tokenizer's, ≤ 160 MB", "%.0f MB above, %.0f MB", (u.RSS-b.tokenizer)/mb, u.RSS/mb)
	}
}

func (r *report) print(out io.Writer, took time.Duration) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.rows) > 0 {
		fmt.Fprintln(w, "body\twhat\tthrough\trequests\tp50 ms\tp99 ms\tfirst byte p50\tits way back p50\tCPU ms\tallocations\tKB allocated\treductions")
		for _, row := range r.rows {
			fmt.Fprintln(w, row)
		}
		fmt.Fprintln(w)
		w.Flush()
	}
	for _, n := range r.notes {
		fmt.Fprintln(out, n)
	}
	fmt.Fprintln(out)
	fmt.Fprintln(w, "mark\twanted\tmeasured\t")
	missed := 0
	for _, m := range r.marks {
		met := "met"
		if !m.met {
			met = "NOT MET"
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.what, m.want, m.got, met)
	}
	w.Flush()
	fmt.Fprintf(out, "\n%d of %d marks met, in %s on %d cores\n", len(r.marks)-missed, len(r.marks), took.Round(time.Second), runtime.NumCPU())
}
