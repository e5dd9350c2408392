package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report collects what is printed at the end.
type report struct {
	rows  []string
	notes []string
	marks []mark
}

// mark is a limit that furl must keep.
type mark struct {
	what, want, got string
	met             bool
}

// notMeasured is the measured value of a mark whose figure is unknown.
const notMeasured = "not measured"

// mark adds a limit and whether furl keeps it. Arguments of type float64 are
// figures: if one of them is unknown, the mark is not met.
func (r *report) mark(met bool, what, want, format string, args ...any) {
	m := mark{what, want, fmt.Sprintf(format, args...), met}
	if slices.ContainsFunc(args, func(a any) bool { f, ok := a.(float64); return ok && math.IsNaN(f) }) {
		m.got, m.met = notMeasured, false
	}
	r.marks = append(r.marks, m)
}

// note adds a line, once.
func (r *report) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(r.notes, line) {
		r.notes = append(r.notes, line)
	}
}

// unread adds a note why the figures of a target are unknown.
func (r *report) unread(t *target, err error) {
	if err != nil {
		r.note("%s: its resource usage cannot be measured: %v", t.name, err)
	}
}

// row adds a phase to the table.
func (r *report) row(kb int, name string, ph *phase) {
	for _, t := range ph.targets {
		s := ph.by[t.name]
		cells := []string{fmt.Sprintf("%d KB", kb), name, t.name, fmt.Sprint(len(s.samples)),
			figure(s.quantile(0.5, total), 2), figure(s.quantile(0.99, total), 2), figure(s.quantile(0.5, first), 2), figure(s.quantile(0.5, relay), 2), "", "", ""}
		if t.name != direct {
			cells[8] = figure(s.per(s.used.CPU)*1000, 2)
			cells[9] = figure(s.per(s.used.Allocs), 0)
			cells[10] = figure(s.per(s.used.Bytes)/1024, 0)
			r.unread(t, s.unread)
		}
		noted := ""
		for i := range s.samples {
			if s.samples[i].note != "" {
				noted = s.samples[i].note
			}
		}
		cells = append(cells, fmt.Sprint(s.reductions()))
		r.rows = append(r.rows, strings.Join(cells, "\t"))
		if noted != "" {
			r.note("%d KB, %s, %s: %s", kb, name, t.name, noted)
		}
	}
}

// above is how much later than a plain proxy furl may answer, in milliseconds.
func above(kb int) float64 {
	switch {
	case kb <= 100:
		return 1
	case kb <= 600:
		return 5
	}
	return 20
}

// atMost adds a mark: value must not exceed limit. Both have the same unit.
func (r *report) atMost(limit, value float64, unit, format string, args ...any) {
	r.mark(value <= limit, fmt.Sprintf(format, args...), fmt.Sprintf("≤ %g %s", limit, unit), "%.2f "+unit, value)
}

// reduced returns a figure of a target that reduces, unknown if it never did.
func (r *report) reduced(t *target, v float64) float64 {
	if t.reduced > 0 {
		return v
	}
	r.note("%s: no reduction in any response header, so the cost of reducing is unknown", t.name)
	return unknown
}

// small is the largest body, in kilobytes, for which the time from the request to
// the first streamed byte has a limit. Receiving a larger body takes that long.
const small = 100

// judge compares the phase of a growing conversation with the limits.
func (r *report) judge(kb int, ph *phase) {
	proxy, pass := ph.by[proxied], ph.by[passing]
	r.atMost(above(kb), pass.quantile(0.5, total)-proxy.quantile(0.5, total), "ms", "%d KB: recording, time above a plain proxy, p50", kb)
	r.atMost(above(kb), ph.by[bypassed].quantile(0.5, total)-proxy.quantile(0.5, total), "ms", "%d KB: bypassed, time above a plain proxy, p50", kb)
	p99, most := pass.quantile(0.99, total), 3*proxy.quantile(0.99, total)
	r.mark(p99 <= most, fmt.Sprintf("%d KB: recording, p99", kb), fmt.Sprintf("≤ %.1f ms (3 × the proxy's)", most), "%.1f ms", p99)
	r.twice(fmt.Sprintf("%d KB", kb), ph)
	r.relays(fmt.Sprintf("%d KB", kb), ph)
	if kb <= small {
		r.firsts(kb, passing, ph)
		r.firsts(kb, reducing, ph)
	}
}

// limitFirst is how much later than through a plain proxy the first streamed
// byte may arrive, in milliseconds.
const limitFirst = 2

// firsts limits the time from the request to the first streamed byte.
func (r *report) firsts(kb int, name string, ph *phase) {
	r.atMost(limitFirst, ph.by[name].quantile(0.5, first)-ph.by[proxied].quantile(0.5, first), "ms",
		"%d KB: %s, time to first streamed byte above the proxy, p50", kb, strings.TrimPrefix(name, "furl, "))
}

// twice limits the time with reducing to twice the time without.
func (r *report) twice(what string, ph *phase) {
	v := ph.by[reducing].quantile(0.5, total) / ph.by[passing].quantile(0.5, total)
	r.atMost(2, r.reduced(ph.target(reducing), v), "×", "%s: reducing, total time relative to recording, p50", what)
}

// relays limits the delay of the first streamed byte from the upstream.
func (r *report) relays(what string, ph *phase) {
	r.back(what+": reducing, delay of the first streamed byte", reducing, relay, ph)
}

// back limits a delay between the upstream and the client.
func (r *report) back(what, name string, way func(sample) time.Duration, ph *phase) {
	r.atMost(limitFirst, ph.by[name].quantile(0.5, way)-ph.by[proxied].quantile(0.5, way), "ms", "%s, above the proxy, p50", what)
}

func (r *report) judgeFormat(kb int, name string, stream bool, ph *phase) {
	how := "streamed"
	if !stream {
		how = "not streamed"
	}
	r.atMost(above(kb), ph.by[passing].quantile(0.5, total)-ph.by[proxied].quantile(0.5, total), "ms", "%d KB, %s, %s: recording, time above a plain proxy, p50", kb, name, how)
	r.twice(fmt.Sprintf("%d KB, %s, %s", kb, name, how), ph)
	if stream {
		r.relays(fmt.Sprintf("%d KB, %s", kb, name), ph)
	}
}

// idle is the time without requests after which furl has returned unused memory
// to the system.
const idle = indexed + 3*time.Second

// oneSession is the phase after which the gateways have seen one conversation.
const oneSession = "one session"

// memory reports the memory of the gateways, and compares it with the limits
// after the largest bodies.
func (b *bench) memory(kb int, when string, w *ways) {
	time.Sleep(idle)
	for _, t := range w.targets {
		if t.p.furl {
			b.resident(kb, when, t)
		}
	}
}

func (b *bench) resident(kb int, when string, t *target) {
	const mb = 1 << 20
	u, err := usageOf(t.p)
	b.unread(t, err)
	heap := unknown
	if m, err := scrape(t.p.url); err == nil {
		heap = new(lacking).of(m, metricHeap)
	}
	b.note("%d KB, %s, %s: %s MB resident, %s MB of it heap objects; a process with only the vocabulary has %s MB resident",
		kb, when, t.name, figure(u.RSS/mb, 0), figure(heap/mb, 0), figure(b.tokenizer/mb, 0))
	if kb < 2000 || t.bypass {
		return
	}
	what := fmt.Sprintf("%d KB, after %s: %s, resident memory", kb, when, t.name)
	if above := u.RSS - b.tokenizer; when == oneSession {
		b.mark(above <= 60*mb, what, "≤ 60 MB above the tokenizer", "%.0f MB above, %.0f MB", above/mb, u.RSS/mb)
		return
	}
	b.mark(u.RSS <= 160*mb, what, "≤ 160 MB", "%.0f MB", u.RSS/mb)
}

// missed counts the marks that are not met, and those among them that were not
// measured.
func (r *report) missed() (missed, unmeasured int) {
	for _, m := range r.marks {
		if !m.met {
			missed++
		}
		if m.got == notMeasured {
			unmeasured++
		}
	}
	return missed, unmeasured
}

func (r *report) print(out io.Writer, took time.Duration) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.rows) > 0 {
		fmt.Fprintln(w, "body\tphase\ttarget\trequests\tp50 ms\tp99 ms\tfirst byte p50\tits delay p50\tCPU ms\tallocations\tKB allocated\treductions")
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
	fmt.Fprintln(w, "what\tlimit\tmeasured\t")
	for _, m := range r.marks {
		met := "met"
		if !m.met {
			met = "NOT MET"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.what, m.want, m.got, met)
	}
	w.Flush()
	missed, unmeasured := r.missed()
	fmt.Fprintf(out, "\n%d of %d limits met, in %s on %d cores\n", len(r.marks)-missed, len(r.marks), took.Round(time.Second), runtime.NumCPU())
	if unmeasured > 0 {
		fmt.Fprintf(out, "%d not measured; the lines above the table say why\n", unmeasured)
	}
}
