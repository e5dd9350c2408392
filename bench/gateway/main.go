// Gateway measures what furl serve adds to a request. In one run and by turns,
// it sends the same requests directly, through the reverse proxy of the
// standard library, and through furl. The upstream is a dummy that answers at
// once. Each of them is a process of its own, and furl is the program that
// users run. The report ends with a table of the limits and whether furl keeps
// them.
//
//	go run -C bench ./gateway [-furl program] [-n 100] [-sizes 57,553,2200]
//
// docs/gateway-bench.md explains the measurements and has the results.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// options are what a run is asked for.
type options struct {
	furl  string
	n     int
	conns int
	sizes []int // in kilobytes
	turns []int
	only  string
	args  []string // more of furl serve, where it reduces
	dir   string
	soak  *soakOptions // nil: no soak
}

func main() {
	var o options
	task := flag.String("child", "", "what this process does for another `task`: upstream, proxy, tokenizer")
	up := flag.String("upstream", "", "`address` that the child's requests go to")
	flag.StringVar(&o.furl, "furl", "", "the `program` to measure (default one built from this tree)")
	flag.IntVar(&o.n, "n", 100, "requests per target and phase of the smallest body; larger ones have fewer")
	flag.IntVar(&o.conns, "conns", 8, "connections in the phases with several")
	sizes := flag.String("sizes", "57,553,2200", "sizes of bodies in `kilobytes`")
	turns := flag.String("turns", "20,200", "lengths of the sessions in which prefixes are compared")
	flag.StringVar(&o.only, "only", "", "one part of it: time, formats, prefix, bytes, store")
	args := flag.String("args", "", "more `flags` for furl serve where it reduces, such as --recall")
	soaking := flag.Bool("soak", false, "let many agents work for long instead, see -sessions, -requests and -limit")
	var so soakOptions
	flag.IntVar(&so.sessions, "sessions", 200, "agents at once in a soak")
	flag.IntVar(&so.requests, "requests", 50_000, "requests in a soak")
	flag.IntVar(&so.length, "length", 120, "most requests of a session in a soak")
	flag.DurationVar(&so.limit, "limit", 30*time.Minute, "time for a soak")
	flag.Parse()
	if *soaking {
		o.soak = &so
	}
	err := error(nil)
	if *task != "" {
		err = child(*task, *up)
	} else {
		o.sizes, o.turns, o.args = numbers(*sizes), numbers(*turns), strings.Fields(*args)
		err = run(&o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func numbers(list string) (out []int) {
	for s := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// bench is one run.
type bench struct {
	options
	ctx             context.Context
	upstream, proxy *process
	tokenizer       float64 // resident bytes of a process that has the vocabulary
	report
}

func run(o *options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.dir, err = os.MkdirTemp("", "furl-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if o.furl == "" {
		o.furl = filepath.Join(o.dir, "furl-under-test")
		if err := buildFurl(ctx, o.furl); err != nil {
			return fmt.Errorf("build furl: %w", err)
		}
	}
	b := &bench{options: *o, ctx: ctx}
	if b.upstream, err = startChild(ctx, "upstream", ""); err != nil {
		return err
	}
	defer b.upstream.stop()
	if b.proxy, err = startChild(ctx, "proxy", b.upstream.url); err != nil {
		return err
	}
	defer b.proxy.stop()
	if err := b.measureTokenizer(); err != nil {
		return err
	}
	began := time.Now()
	if b.options.soak != nil {
		if err := b.soak(*b.options.soak); err != nil {
			return err
		}
		return b.end(time.Since(began))
	}
	for _, part := range []struct {
		name string
		do   func() error
	}{{"time", b.times}, {"formats", b.formats}, {"prefix", b.prefixes}, {"bytes", b.bytes}, {"store", b.stores}} {
		if b.only != "" && b.only != part.name {
			continue
		}
		if err := part.do(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b.end(time.Since(began))
}

// buildFurl builds furl as users do, in its own module. It must be called in a
// folder of the bench module, whose go.mod says where that is.
func buildFurl(ctx context.Context, out string) error {
	dir, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/furlhq/furl"))
	if err != nil {
		return err
	}
	_, err = output(exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(dir), "-o", out, "./cmd/furl"))
	return err
}

// output is what a command prints. Its error has what the command printed to
// standard error.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(exit.Stderr))
	}
	return string(out), err
}

// errMissed is returned where furl is not what it is held to.
var errMissed = errors.New("not all marks are met")

// end prints what was found.
func (b *bench) end(took time.Duration) error {
	b.print(os.Stdout, took)
	if missed, _ := b.missed(); missed > 0 {
		return errMissed
	}
	return nil
}

// measureTokenizer finds out what the vocabulary takes in memory.
func (b *bench) measureTokenizer() error {
	p, err := startChild(b.ctx, "tokenizer", "")
	if err != nil {
		return err
	}
	defer p.stop()
	u, err := usageOf(p)
	if b.tokenizer = u.RSS; err != nil {
		b.note("the tokenizer: what it uses cannot be measured: %v", err)
	}
	return nil
}

// gateway starts one with the flags, and gives what ends it.
func (b *bench) gateway(name string, args ...string) (*process, error) {
	p, err := newGateway(b.dir, name, args...)
	if err != nil {
		return nil, err
	}
	return p, p.start(b.ctx, b.furl, b.upstream.url)
}
