// Gateway measures what furl serve adds to a request. In one run and by turns,
// it sends the same requests directly, through the reverse proxy of the
// standard library, and through furl. The upstream is a dummy that answers at
// once. Each of them is a process of its own, and furl is the program that
// users run. The report ends with a table of the limits and whether furl keeps
// them.
//
//	go run -C internal/dev/bench ./gateway [-furl program] [-n 100] [-sizes 57,553,2200]
//
// docs/operate/gateway-bench.md explains the measurements and has the results.
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

// options are the flags of a run.
type options struct {
	furl  string
	n     int
	conns int
	sizes []int // of request bodies, in kilobytes
	turns []int
	only  string
	args  []string // more flags for the furl serve that reduces
	dir   string
	soak  *soakOptions // nil: measure instead of soaking
	pair  string       // an older furl to compare with; "": measure instead
	// profiles is a folder for profiles of furl, which must be built as package gate does; "": none.
	profiles string
}

func main() {
	var o options
	task := flag.String("child", "", "`task` of a process that the benchmark starts: upstream, proxy or tokenizer")
	up := flag.String("upstream", "", "`address` to which the proxy sends requests")
	flag.StringVar(&o.furl, "furl", "", "furl `program` to measure (default: built from this source tree)")
	flag.IntVar(&o.n, "n", 100, "requests per target and phase for the smallest body; fewer for larger ones")
	flag.IntVar(&o.conns, "conns", 8, "connections in the phase with several connections")
	sizes := flag.String("sizes", "57,553,2200", "sizes of the request bodies in `kilobytes`")
	turns := flag.String("turns", "20,200", "requests per session when comparing prefixes")
	flag.StringVar(&o.only, "only", "", "run one `part` only: time, formats, prefix, bytes or store; with -pair, start, none, auto, told, disk or memory")
	args := flag.String("args", "", "more `flags` for the furl serve that reduces, such as --recall")
	soaking := flag.Bool("soak", false, "run many agents at once instead of measuring; see -sessions, -requests and -limit")
	var so soakOptions
	flag.IntVar(&so.sessions, "sessions", 200, "number of agents at once in a soak")
	flag.IntVar(&so.requests, "requests", 50_000, "total number of requests in a soak")
	flag.IntVar(&so.length, "length", 120, "maximum requests per session in a soak")
	flag.DurationVar(&so.limit, "limit", 30*time.Minute, "maximum duration of a soak")
	flag.StringVar(&o.pair, "pair", "", "compare furl with an older furl `program` instead of measuring it")
	flag.StringVar(&o.profiles, "profiles", "", "write profiles of furl into a `folder` instead of measuring it")
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
	tokenizer       float64 // resident bytes of a process with only the vocabulary loaded
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
	if o.pair != "" {
		return b.pairs()
	}
	if o.profiles != "" {
		return b.profile()
	}
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

// errMissed says that furl exceeds a limit.
var errMissed = errors.New("not all limits are met")

// end prints the report.
func (b *bench) end(took time.Duration) error {
	b.print(os.Stdout, took)
	if missed, _ := b.missed(); missed > 0 {
		return errMissed
	}
	return nil
}

// measureTokenizer measures the memory of the tokenizer's vocabulary.
func (b *bench) measureTokenizer() error {
	p, err := startChild(b.ctx, "tokenizer", "")
	if err != nil {
		return err
	}
	defer p.stop()
	u, err := usageOf(p)
	if b.tokenizer = u.RSS; err != nil {
		b.note("tokenizer: its memory cannot be measured: %v", err)
	}
	return nil
}

// gateway starts furl serve with more flags.
func (b *bench) gateway(name string, args ...string) (*process, error) {
	p, err := newGateway(b.dir, name, args...)
	if err != nil {
		return nil, err
	}
	return p, p.start(b.ctx, b.furl, b.upstream.url)
}
