package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// benchModule is the module of the benchmarks, probePackage the probe in it.
var (
	benchModule  = filepath.Join("internal", "dev", "bench")
	probePackage = filepath.Join(benchModule, "gate", "probe")
)

// constructors is the file of the probe that calls the constructors of furl's packages. An older
// tree uses its own.
const constructors = "stand.go"

// net compares everything that leaves both builds.
func (b *builds) net(ctx context.Context, folders []string) error {
	if err := b.buildProbes(ctx); err != nil {
		return err
	}
	for i, f := range folders {
		abs, err := filepath.Abs(f)
		if err != nil {
			return err
		}
		folders[i] = abs
	}
	began := time.Now()
	var lines [2][]string
	var errs [2]error
	var both sync.WaitGroup
	for i, side := range sides {
		both.Go(func() { lines[i], errs[i] = b.probe(ctx, side, folders) })
	}
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	d := compare(lines[0], lines[1])
	fmt.Printf("%d cases, %d requests, %d texts compared in %s: %d differ\n", d.cases, d.requests, d.texts, time.Since(began).Round(time.Second), d.different)
	if d.different == 0 {
		return nil
	}
	for _, kind := range slices.Sorted(maps.Keys(d.kinds)) {
		fmt.Printf("  %6d  %s\n", d.kinds[kind], kind)
	}
	for _, diff := range d.first {
		if err := b.show(ctx, diff, folders); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d texts differ from those of %s, in %d of %d cases", d.different, b.old, d.casesDifferent, d.cases)
}

// sides are the names of the builds.
var sides = [2]string{"old", "new"}

// buildProbes builds the probe and furl in both trees.
func (b *builds) buildProbes(ctx context.Context) error {
	old := filepath.Join(b.tree, "probe-of-gate")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(b.root, probePackage, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := filepath.Base(file)
		if own := filepath.Join(b.tree, probePackage, name); name == constructors {
			if _, err := os.Stat(own); err == nil {
				file = own
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(old, name), text, 0o600); err != nil {
			return err
		}
	}
	for _, step := range []struct{ out, module, pkg string }{
		{"probe-new", filepath.Join(b.root, benchModule), "./gate/probe"}, // first, before somebody changes it
		{"furl-new", b.root, "./cmd/furl"},
		{"probe-old", b.tree, "./probe-of-gate"},
		{"furl-old", b.tree, "./cmd/furl"},
	} {
		if err := build(ctx, filepath.Join(b.dir, step.out), step.module, step.pkg); err != nil {
			return fmt.Errorf("build %s: %w", step.out, err)
		}
	}
	return nil
}

// probe runs the probe of one side and returns its lines.
func (b *builds) probe(ctx context.Context, side string, folders []string, more ...string) ([]string, error) {
	captured := filepath.Join(b.root, "gateway", "testdata", "clients")
	if b.captured != "" {
		captured += string(filepath.ListSeparator) + b.captured
	}
	args := []string{"-furl", filepath.Join(b.dir, "furl-"+side), "-most", strconv.Itoa(b.most), "-captured", captured}
	if b.quick {
		args = append(args, "-quick")
	}
	args = append(append(args, more...), folders...)
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, "probe-"+side), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+b.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var lines []string
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := errors.Join(scanner.Err(), cmd.Wait()); err != nil {
		return nil, fmt.Errorf("the probe of the %s build: %w", side, err)
	}
	return lines, nil
}

// line is one line of the probe.
type line struct{ name, request, what, digest, size string }

func parseLine(text string) line {
	f := strings.Split(text, "\t")
	if len(f) != 5 {
		return line{what: text}
	}
	return line{f[0], f[1], f[2], f[3], f[4]}
}

// difference is the first one of a case: the indexes of the lines in it, -1 if that side has
// no such line.
type difference struct {
	name     string
	at       line
	old, new int
}

// differences is the result of a comparison.
type differences struct {
	cases, requests, texts, different, casesDifferent int
	kinds                                             map[string]int // by what differs
	first                                             []difference
}

// shown is how many cases with differences are shown.
const shown = 4

// compare compares the lines of both sides, by case, request and what they are.
func compare(old, new []string) *differences {
	d := &differences{kinds: make(map[string]int)}
	was, is := byCase(old), byCase(new)
	for _, name := range slices.Concat(was.names, is.names) {
		a, b := was.of[name], is.of[name]
		if a == nil && b == nil {
			continue // seen
		}
		d.cases++
		was.of[name], is.of[name] = nil, nil
		had, requests, found := make(map[string]int), make(map[string]bool), 0
		differs := func(l line, i, j int) {
			if d.different++; found == 0 && len(d.first) < shown {
				d.first = append(d.first, difference{name, l, i, j})
			}
			found++
			d.kinds[numbers.ReplaceAllString(l.what, "N")]++
		}
		for i, l := range a {
			had[l.request+"\t"+l.what] = i + 1
		}
		for j, l := range b {
			d.texts++
			requests[l.request] = true
			i := had[l.request+"\t"+l.what] - 1
			if delete(had, l.request+"\t"+l.what); i < 0 || a[i].digest != l.digest {
				differs(l, i, j)
			}
		}
		for i, l := range a {
			if _, missing := had[l.request+"\t"+l.what]; missing {
				differs(l, i, -1)
			}
		}
		if d.requests += len(requests); found > 0 {
			d.casesDifferent++
		}
	}
	return d
}

var numbers = regexp.MustCompile(`\d+`)

// grouped are lines by case.
type grouped struct {
	names []string
	of    map[string][]line
}

func byCase(lines []string) *grouped {
	g := &grouped{of: make(map[string][]line)}
	for _, text := range lines {
		l := parseLine(text)
		if g.of[l.name] == nil {
			g.names = append(g.names, l.name)
		}
		g.of[l.name] = append(g.of[l.name], l)
	}
	return g
}

// show runs a case again on both sides and prints where the texts differ.
func (b *builds) show(ctx context.Context, d difference, folders []string) error {
	fmt.Printf("\n%s, request %s, %s:\n", d.name, d.at.request, d.at.what)
	var texts [2][]byte
	for i, side := range sides {
		dump, err := os.MkdirTemp(b.dir, "dump-")
		if err != nil {
			return err
		}
		if _, err := b.probe(ctx, side, folders, "-only", d.name, "-dump", dump); err != nil {
			return err
		}
		n := [2]int{d.old, d.new}[i]
		if n < 0 {
			fmt.Printf("  %s: none\n", side)
			continue
		}
		if texts[i], err = os.ReadFile(filepath.Join(dump, fmt.Sprintf("%06d", n+1))); err != nil {
			return err
		}
	}
	at := 0
	for at < len(texts[0]) && at < len(texts[1]) && texts[0][at] == texts[1][at] {
		at++
	}
	if bytes.Equal(texts[0], texts[1]) {
		fmt.Println("  equal when the case ran again: it differs between runs")
		return nil
	}
	for i, side := range sides {
		t := texts[i]
		fmt.Printf("  %s: %d bytes; from byte %d: %q\n", side, len(t), max(0, at-60), t[min(len(t), max(0, at-60)):min(len(t), at+140)])
	}
	return nil
}
