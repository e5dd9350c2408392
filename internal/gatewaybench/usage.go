package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/procstat"
)

// usage is what a process has used so far.
type usage struct {
	CPU    float64 // seconds
	Allocs float64 // objects
	Bytes  float64 // allocated
	RSS    float64 // now
}

func (u usage) minus(v usage) usage {
	return usage{u.CPU - v.CPU, u.Allocs - v.Allocs, u.Bytes - v.Bytes, u.RSS}
}

// ownUsage is this process's.
func ownUsage() usage {
	u := procstat.Read()
	return usage{u.CPU.Seconds(), float64(u.Allocs), float64(u.AllocBytes), float64(u.RSS)}
}

// usageOf asks a process: furl by its metrics, others as they offer it.
func usageOf(p *process) (usage, error) {
	if !p.furl {
		var u usage
		resp, err := http.Get(p.url + "/bench/usage")
		if err != nil {
			return u, err
		}
		defer resp.Body.Close()
		return u, json.NewDecoder(resp.Body).Decode(&u)
	}
	m, err := scrape(p.url)
	if err != nil {
		return usage{}, err
	}
	return usage{m["process_cpu_seconds_total"], m["go_memstats_mallocs_total"], m["go_memstats_alloc_bytes_total"], m["process_resident_memory_bytes"]}, nil
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
