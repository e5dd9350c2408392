package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// The pairs compare two builds of furl by turns, so that what else the machine does meets both.
// What counts is time of the processor, not of the clock.

// pairing is one figure of both builds, measured in rounds.
type pairing struct {
	what, unit string
	digits     int
	old, new   []float64 // one of each round
}

// median returns the middle of values, unknown if there is none or one is unknown.
func median(values []float64) float64 { return quantileOf(values, 0.5) }

func quantileOf(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 || math.IsNaN(sorted[0]) { // NaN is first
		return unknown
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	return sorted[low] + (at-float64(low))*(sorted[min(low+1, len(sorted)-1)]-sorted[low])
}

// ratio returns the middle of the rounds' ratios, and half the distance between their quartiles.
func (p *pairing) ratio() (ratio, spread float64) {
	var all []float64
	for i := range min(len(p.old), len(p.new)) {
		if p.old[i] <= 0 {
			return unknown, unknown
		}
		all = append(all, p.new[i]/p.old[i])
	}
	return median(all), (quantileOf(all, 0.75) - quantileOf(all, 0.25)) / 2
}

// lost reports a loss that is larger than 5% and than twice the spread.
func (p *pairing) lost() bool {
	ratio, spread := p.ratio()
	return ratio > 1.05 && ratio-1 > 2*spread
}

// line is a line of the table.
func (p *pairing) line() string {
	ratio, spread := p.ratio()
	verdict := ""
	if p.lost() {
		verdict = "LOSS"
	}
	return fmt.Sprintf("| %s | %s %s | %s %s | %d | %s | ±%s | %s |", p.what, figure(median(p.old), p.digits), p.unit, figure(median(p.new), p.digits), p.unit,
		min(len(p.old), len(p.new)), figure(ratio, 2), figure(spread, 2), verdict)
}

// The targets of a pairing, besides the proxy.
const (
	older = "older"
	newer = "newer"
)

// pairRounds is how many ratios there are of each figure.
const pairRounds = 5

// pairs measures and prints the table.
func (b *bench) pairs() error {
	parts := []pairPart{{"start", b.pairStart}}
	for _, kb := range b.sizes {
		for _, policy := range []string{"none", "auto"} {
			parts = append(parts, pairPart{policy, func() ([]*pairing, error) { return b.pairRequests(kb, policy, 1) }})
		}
	}
	parts = append(parts,
		pairPart{"told", func() ([]*pairing, error) { return b.pairRequests(b.sizes[0], "none", 7) }},
		pairPart{"disk", b.pairDisk}, pairPart{"memory", b.pairMemory})
	var lines []*pairing
	for _, part := range parts {
		if b.only != "" && b.only != part.name {
			continue
		}
		found, err := part.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		for _, p := range found {
			fmt.Fprintf(os.Stderr, "%s; old %.4g, new %.4g\n", p.what, p.old, p.new) // the rounds
		}
		lines = append(lines, found...)
	}
	fmt.Println("| | old | new | n | ratio | spread | |\n|---|---|---|---|---|---|---|")
	lost := 0
	for _, p := range lines {
		fmt.Println(p.line())
		if p.lost() {
			lost++
		}
	}
	fmt.Println("\nn: rounds, by turns. ratio: new to old, the median of the rounds. spread: half the distance between their quartiles. LOSS: above 5% and above twice the spread.")
	for _, n := range b.notes {
		fmt.Println(n)
	}
	if lost > 0 {
		return fmt.Errorf("%d losses", lost)
	}
	return nil
}

// pairPart is a part of the comparison; -only runs one.
type pairPart struct {
	name    string
	measure func() ([]*pairing, error)
}

// pairTargets starts both builds, with stores of their own.
func (b *bench) pairTargets(name string, args ...string) ([]*target, error) {
	var targets []*target
	for _, side := range []struct{ name, program string }{{older, b.pair}, {newer, b.furl}} {
		p, err := newGateway(b.dir, name+"-"+side.name, args...)
		if err == nil {
			err = p.start(b.ctx, side.program, b.upstream.url)
		}
		if err != nil {
			stopAll(targets)
			return nil, err
		}
		targets = append(targets, newTarget(side.name, p))
	}
	return targets, nil
}

func stopAll(targets []*target) {
	for _, t := range targets {
		_ = t.p.stop()
	}
}

// policyArgs are the flags of furl serve for a policy; auto gets a window that bodies of this size
// exceed, so that it acts.
func policyArgs(policy string, kb int) []string {
	if policy == "auto" {
		return []string{"--policy", policy, "--window", strconv.Itoa(window(kb))}
	}
	return []string{"--policy", policy}
}

// requestsOf is the number of requests of a round for a body size.
func requestsOf(kb int) int {
	switch {
	case kb > 1000:
		return 12
	case kb > 200:
		return 24
	}
	return 60
}

// pairRequests compares streamed, growing conversations, and first requests of sessions. Told is
// how many times as long as usual instructions and tools are.
func (b *bench) pairRequests(kb int, policy string, told int) ([]*pairing, error) {
	targets, err := b.pairTargets(fmt.Sprintf("pair-%d-%s-%d", kb, policy, told), policyArgs(policy, kb)...)
	if err != nil {
		return nil, err
	}
	defer stopAll(targets)
	label := fmt.Sprintf("%s, %d KB", policy, kb)
	if told > 1 {
		label += fmt.Sprintf(" and %d KB of instructions and tools", 13*told)
	}
	seed := uint64(5000)
	fresh := func() *history {
		seed++
		return newHistoryTold(furl.FormatAnthropic, seed, kb<<10+13<<10*(told-1), models[furl.FormatAnthropic], told)
	}
	ph := &phase{targets: append([]*target{newTarget(proxied, b.proxy)}, targets...)}
	cpu := &pairing{what: "CPU a request, " + label, unit: "ms", digits: 2}
	allocs := &pairing{what: "allocated a request, " + label, unit: "kB", digits: 0}
	late := &pairing{what: "p50 above a plain proxy, " + label, unit: "ms", digits: 2}
	begin := &pairing{what: "first byte above a plain proxy, p50, " + label, unit: "ms", digits: 2}
	begun := &pairing{what: "CPU of a session's first request, " + label, unit: "ms", digits: 1}
	n := requestsOf(kb)
	talks := make([]*history, max(1, n*stepBytes/(kb<<10))) // so that none becomes twice as long in a round
	for round := range pairRounds {
		if err := ph.pairRun(len(talks), func(i int) [][]*request {
			talks[i] = fresh()
			return one(talks[i], true)
		}); err != nil {
			return nil, err
		}
		if told == 1 {
			begun.old, begun.new = append(begun.old, ph.cpuOf(older)), append(begun.new, ph.cpuOf(newer))
		}
		if err := ph.pairRun(n, func(i int) [][]*request {
			talk := talks[i%len(talks)]
			talk.grow()
			return one(talk, true)
		}); err != nil {
			return nil, err
		}
		proxy := ph.by[proxied]
		for _, side := range []struct {
			name string
			to   func(p *pairing) *[]float64
		}{{older, func(p *pairing) *[]float64 { return &p.old }}, {newer, func(p *pairing) *[]float64 { return &p.new }}} {
			s := ph.by[side.name]
			for i := range s.samples {
				if s.samples[i].note != "" {
					b.note("%s, %s, round %d: %s", label, side.name, round+1, s.samples[i].note)
				}
			}
			for _, m := range []struct {
				p *pairing
				v float64
			}{
				{cpu, ph.cpuOf(side.name)}, {allocs, s.per(s.used.Bytes) / 1000},
				{late, s.quantile(0.5, total) - proxy.quantile(0.5, total)}, {begin, s.quantile(0.5, first) - proxy.quantile(0.5, first)},
			} {
				values := side.to(m.p)
				*values = append(*values, m.v)
			}
		}
		if policy == "auto" && ph.by[newer].reductions()+ph.by[older].reductions() == 0 && round == 0 {
			b.note("%s: auto has hidden nothing", label)
		}
	}
	out := []*pairing{cpu, allocs, late, begin}
	if told == 1 {
		out = append(out, begun)
	}
	return out, nil
}

// pairRun sends n rounds, and waits until they are indexed.
func (ph *phase) pairRun(n int, next func(i int) [][]*request) error {
	before := make(map[*target]float64)
	for _, t := range ph.targets {
		before[t] = cpuSeconds(t.p)
	}
	i := -1
	err := ph.run(n, func() [][]*request { i++; return next(i) })
	ph.cpu = make(map[string]float64)
	for _, t := range ph.targets {
		ph.cpu[t.name] = 1000 * since(cpuSeconds(t.p), before[t]) / float64(n)
	}
	return err
}

// cpuOf is the processor time of a request in the last phase, in milliseconds.
func (ph *phase) cpuOf(name string) float64 { return ph.cpu[name] }

// cpuSeconds is the processor time of a process: of its threads in nanoseconds where the system says
// it, else as the process counts it.
func cpuSeconds(p *process) float64 {
	if p.cmd == nil || p.cmd.Process == nil {
		return unknown
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	sum := 0.0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		word, _, _ := strings.Cut(string(text), " ")
		if ns, err := strconv.ParseFloat(word, 64); err == nil {
			sum += ns / 1e9
		}
	}
	if sum > 0 {
		return sum
	}
	u, _ := usageOf(p)
	return u.CPU
}

// pairDisk compares what is written to the disk for each step, the search index included.
func (b *bench) pairDisk() ([]*pairing, error) {
	targets, err := b.pairTargets("pair-disk", "--policy", "none")
	if err != nil {
		return nil, err
	}
	defer stopAll(targets)
	const steps = 20
	ph := &phase{targets: targets}
	talk := newHistory(furl.FormatAnthropic, 77, b.sizes[0]<<10, models[furl.FormatAnthropic])
	if err := ph.run(1, func() [][]*request { return one(talk, true) }); err != nil {
		return nil, err
	}
	p := &pairing{unit: "kB", digits: 1}
	size := talk.size
	for range pairRounds {
		before := map[string]float64{older: written(targets[0].p), newer: written(targets[1].p)}
		if err := ph.run(steps, func() [][]*request { talk.grow(); return one(talk, true) }); err != nil {
			return nil, err
		}
		p.old = append(p.old, since(written(targets[0].p), before[older])/steps/1000)
		p.new = append(p.new, since(written(targets[1].p), before[newer])/steps/1000)
	}
	p.what = fmt.Sprintf("written to disk a request, for %.1f kB new", float64(talk.size-size)/steps/pairRounds/1000)
	return []*pairing{p}, nil
}

// written is how many bytes a process has caused to be written to a disk.
func written(p *process) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return n
			}
		}
	}
	return unknown
}

// pairMemory compares the resident memory of an idle gateway and of one with 14 sessions of the
// largest body.
func (b *bench) pairMemory() ([]*pairing, error) {
	kb := slices.Max(b.sizes)
	idle := &pairing{what: "resident memory, idle", unit: "MB", digits: 1}
	full := &pairing{what: fmt.Sprintf("resident memory, 14 sessions of %d KB", kb), unit: "MB", digits: 0}
	for round := range 3 {
		targets, err := b.pairTargets(fmt.Sprint("pair-memory-", round), "--policy", "none")
		if err != nil {
			return nil, err
		}
		time.Sleep(2 * time.Second)
		note := func(p *pairing) {
			for i, values := range []*[]float64{&p.old, &p.new} {
				u, _ := usageOf(targets[i].p)
				*values = append(*values, u.RSS/1e6)
			}
		}
		note(idle)
		ph := &phase{targets: targets}
		seed := uint64(9000)
		err = ph.run(14, func() [][]*request {
			seed++
			return one(newHistory(furl.FormatAnthropic, seed, kb<<10, models[furl.FormatAnthropic]), true)
		})
		note(full)
		stopAll(targets)
		if err != nil {
			return nil, err
		}
	}
	return []*pairing{idle, full}, nil
}

// pairStart compares the start of furl and its size.
func (b *bench) pairStart() ([]*pairing, error) {
	cpu := &pairing{what: "furl --version, CPU", unit: "ms", digits: 1}
	wall := &pairing{what: "furl --version", unit: "ms", digits: 1}
	size := &pairing{what: "program, without symbols", unit: "MB", digits: 1}
	for _, values := range []struct {
		program string
		to      *[]float64
	}{{b.pair, &size.old}, {b.furl, &size.new}} {
		*values.to = []float64{fileSize(values.program) / 1e6}
	}
	for range 30 {
		for _, side := range []struct {
			program      string
			spent, clock *[]float64
		}{{b.pair, &cpu.old, &wall.old}, {b.furl, &cpu.new, &wall.new}} {
			cmd := exec.CommandContext(b.ctx, side.program, "--version")
			began := time.Now()
			if err := cmd.Run(); err != nil {
				return nil, err
			}
			*side.clock = append(*side.clock, asMS(time.Since(began)))
			*side.spent = append(*side.spent, asMS(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
		}
	}
	return []*pairing{size, cpu, wall}, nil
}

// profile writes profiles of the processor and of allocations, for each policy with the smallest
// and the largest body.
func (b *bench) profile() error {
	for _, kb := range []int{slices.Min(b.sizes), slices.Max(b.sizes)} {
		for _, policy := range []string{"none", "auto"} {
			name := fmt.Sprintf("%s-%d", policy, kb)
			dir := filepath.Join(b.profiles, name)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			if err := b.profileOne(kb, policy, dir); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// profileFolder is the variable with the folder for the profiles of a furl that package gate has built.
const profileFolder = "FURL_GATE_PROFILES"

func (b *bench) profileOne(kb int, policy, dir string) error {
	if err := os.Setenv(profileFolder, dir); err != nil {
		return err
	}
	p, err := b.gateway("profile-"+policy+strconv.Itoa(kb), policyArgs(policy, kb)...)
	if err != nil {
		return err
	}
	defer func() { _ = p.stop() }()
	ph := &phase{targets: []*target{newTarget("profiled", p)}}
	talks := make([]*history, max(1, 600/cmp.Or(kb/57, 1)/10))
	for i := range talks {
		talks[i] = newHistory(furl.FormatAnthropic, uint64(100+i), kb<<10, models[furl.FormatAnthropic])
	}
	if err := ph.pairRun(len(talks), func(i int) [][]*request { return one(talks[i], true) }); err != nil {
		return err
	}
	toggle := func(file string) error {
		if err := p.cmd.Process.Signal(profileSignal); err != nil {
			return err
		}
		for range 200 {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return fmt.Errorf("furl has written no %s: it was not built for profiles", file)
	}
	if err := toggle("begun"); err != nil {
		return err
	}
	if err := ph.pairRun(10*requestsOf(kb), func(i int) [][]*request {
		talk := talks[i%len(talks)]
		talk.grow()
		return one(talk, true)
	}); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s, %d KB: %d requests, %.2f ms CPU each\n", policy, kb, 10*requestsOf(kb), ph.cpuOf("profiled"))
	return toggle("ended")
}
