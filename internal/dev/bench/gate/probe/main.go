// Probe sends fixed requests through furl and prints a digest of everything that leaves it: what the
// provider gets, what the client gets, the records of each session, the API and the command's
// JSON. Package gate runs it for two builds and compares the lines.
//
// It uses public packages only, so that it compiles in older commits too. What depends on the
// constructors of those packages is in stand.go: an older commit that has this program uses its
// own stand.go.
package main

import (
	"bufio"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// options are the flags of a run.
type options struct {
	quick    bool
	most     int    // requests of a recording
	only     string // a case
	dump     string // a folder for what the digests are of
	furl     string // the program whose JSON is compared; "": not compared
	captured string // folders of captured requests
	folders  []string
	dir      string // for stores
}

// start is the time of the first request of each case.
var start = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "run a part of the cases, in about a minute")
	flag.IntVar(&o.most, "most", 40, "requests of each recording")
	flag.StringVar(&o.only, "only", "", "run one `case`")
	flag.StringVar(&o.dump, "dump", "", "write what the digests are of into a `folder`")
	flag.StringVar(&o.furl, "furl", "", "the furl `program` whose JSON is compared")
	flag.StringVar(&o.captured, "captured", "", "`folders` of requests that real clients sent")
	flag.Parse()
	debug.SetGCPercent(400) // what is measured is not memory
	o.folders = flag.Args()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(o *options) (err error) {
	if o.dir, err = os.MkdirTemp("", "furl-probe-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	out := &output{w: bufio.NewWriterSize(os.Stdout, 1<<16), dump: o.dump}
	cases, err := allCases(o)
	if err != nil {
		return err
	}
	for i := range cases {
		c := &cases[i]
		if o.only != "" && c.name != o.only {
			continue
		}
		if err := c.run(o, out); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return out.w.Flush()
}

// output prints digests.
type output struct {
	w    *bufio.Writer
	dump string
	name string // of the case
	n    int    // lines of the case
}

// put prints one line: the case, the number of the request, what it is, its digest and its size.
func (o *output) put(request int, what string, data []byte) {
	sum := sha256.Sum256(data)
	fmt.Fprintf(o.w, "%s\t%d\t%s\t%x\t%d\n", o.name, request, what, sum[:12], len(data))
	if o.n++; o.dump != "" {
		name := fmt.Sprintf("%06d", o.n)
		if err := os.WriteFile(filepath.Join(o.dump, name), data, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "probe:", err)
			os.Exit(1)
		}
	}
}

// probed is one case: a conversation with one gateway.
type probed struct {
	name string
	run  func(o *options, out *output) error
}

func allCases(o *options) ([]probed, error) {
	cases := scriptedCases(o)
	more, err := clientCases(o)
	if err != nil {
		return nil, err
	}
	cases = append(cases, more...)
	if more, err = recordedCases(o); err != nil {
		return nil, err
	}
	cases = append(cases, more...)
	seen := make(map[string]bool)
	for i := range cases {
		c := &cases[i]
		if seen[c.name] || strings.ContainsAny(c.name, "\t\n") {
			return nil, fmt.Errorf("two cases are called %q", c.name)
		}
		seen[c.name] = true
		run := c.run
		c.run = func(o *options, out *output) error {
			out.name, out.n = c.name, 0
			return run(o, out)
		}
	}
	return cases, nil
}
