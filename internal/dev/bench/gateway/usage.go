package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/dev/procstat"
)

// unknown is a figure that could not be read. What is computed with it is
// unknown too, it is within no limit, and a mark with it is not measured.
var unknown = math.NaN()

// usage is what a process has used so far. A figure is unknown if the process
// does not say it.
type usage struct {
	CPU    float64 // seconds
	Allocs float64 // objects
	Bytes  float64 // allocated
	RSS    float64 // now
}

var nothingKnown = usage{unknown, unknown, unknown, unknown}

// minus is what was used since v. What only grows cannot have become less: then
// it was not the same that was read.
func (u usage) minus(v usage) usage {
	return usage{since(u.CPU, v.CPU), since(u.Allocs, v.Allocs), since(u.Bytes, v.Bytes), u.RSS}
}

func since(now, before float64) float64 {
	if d := now - before; d >= 0 {
		return d
	}
	return unknown
}

// plus is what two phases used together.
func (u usage) plus(v usage) usage {
	return usage{u.CPU + v.CPU, u.Allocs + v.Allocs, u.Bytes + v.Bytes, v.RSS}
}

// ownUsage is this process's.
func ownUsage() usage {
	u := procstat.Read()
	return usage{u.CPU.Seconds(), float64(u.Allocs), float64(u.AllocBytes), float64(u.RSS)}
}

// The metrics of furl's that say what it used.
const (
	metricCPU        = "process_cpu_seconds_total"
	metricAllocs     = "go_memstats_mallocs_total"
	metricBytes      = "go_memstats_alloc_bytes_total"
	metricRSS        = "process_resident_memory_bytes"
	metricHeap       = "go_memstats_heap_alloc_bytes"
	metricGoroutines = "go_goroutines"
)

// usageOf asks a process: furl by its metrics, others as they offer it. Where a
// figure is unknown, the error says why; the others are there all the same.
func usageOf(p *process) (usage, error) {
	if p.furl {
		m, err := scrape(p.url)
		if err != nil {
			return nothingKnown, err
		}
		var lack lacking
		u := usage{lack.of(m, metricCPU), lack.of(m, metricAllocs), lack.of(m, metricBytes), lack.of(m, metricRSS)}
		return u, lack.err("its metrics")
	}
	resp, err := http.Get(p.url + "/bench/usage")
	if err != nil {
		return nothingKnown, err
	}
	defer resp.Body.Close()
	m := make(map[string]float64)
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		return nothingKnown, err
	}
	var lack lacking
	u := usage{lack.of(m, "CPU"), lack.of(m, "Allocs"), lack.of(m, "Bytes"), lack.of(m, "RSS")}
	return u, lack.err("its figures")
}

// lacking are the names of figures that are not there.
type lacking []string

// of gives a figure. None that is read here can be 0: a process that answers
// has used something.
func (l *lacking) of(m map[string]float64, name string) float64 {
	if v := m[name]; v > 0 {
		return v
	}
	*l = append(*l, name)
	return unknown
}

func (l *lacking) err(who string) error {
	if len(*l) == 0 {
		return nil
	}
	slices.Sort(*l)
	return errors.New(who + " do not say " + strings.Join(*l, ", "))
}

// scrape reads metrics without labels.
func scrape(url string) (map[string]float64, error) {
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", resp.Status)
	}
	out := make(map[string]float64)
	s := bufio.NewScanner(resp.Body)
	for s.Scan() {
		if name, value, ok := strings.Cut(s.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				out[name] = n
			}
		}
	}
	return out, s.Err()
}
