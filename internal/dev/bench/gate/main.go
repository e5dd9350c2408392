// Gate compares this source tree with an older commit, which it builds in a temporary folder.
//
//	go run -C internal/dev/bench ./gate -old COMMIT [-quick] net FOLDER…
//	go run -C internal/dev/bench ./gate -old COMMIT cost [-sizes 57]
//	go run -C internal/dev/bench ./gate profile FOLDER
//
// The net proves that nothing has changed: package probe sends the requests of the recordings in
// the folders, and some written ones, through both builds, under every preset and in every wire
// format. Everything that leaves furl must be equal: the bodies and headers that the provider
// receives and the client gets, the records of the sessions, furl's API, and what furl show and
// furl export print. The exit code is 1 if something differs, and the report shows the first
// differences.
//
// The cost compares time of the processor, latency above a plain proxy, allocations, memory, bytes
// written, start-up and size, by turns. The exit code is 1 if something is lost.
//
// The profile shows where the time and the allocations of this tree's furl go.
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
	"strings"
)

// options are the flags of a run.
type options struct {
	old      string
	quick    bool
	most     int
	captured string
	keep     bool
	args     []string
	dir      string
}

func main() {
	var o options
	flag.StringVar(&o.old, "old", "", "the older `commit`")
	flag.BoolVar(&o.quick, "quick", false, "compare a part, in about a minute after the builds")
	flag.IntVar(&o.most, "most", 25, "requests of each recording")
	flag.StringVar(&o.captured, "captured", "", "`folder` of more requests that clients sent, as FURL_CLIENTTEST_CAPTURE writes them")
	flag.BoolVar(&o.keep, "keep", false, "keep the temporary folder, and print its name")
	flag.Parse()
	o.args = flag.Args()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(o *options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(o.args) == 0 || o.old == "" && o.args[0] != "profile" {
		return errors.New("expected -old COMMIT and net or cost, or profile")
	}
	if o.dir, err = os.MkdirTemp("", "furl-gate-"); err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(os.Stderr, "gate: working in", o.dir)
	} else {
		defer os.RemoveAll(o.dir)
	}
	b, err := checkOut(ctx, o)
	if err != nil {
		return err
	}
	switch what := o.args[0]; what {
	case "net":
		return b.net(ctx, o.args[1:])
	case "cost":
		return b.cost(ctx, o.args[1:])
	case "profile":
		return b.profile(ctx, o.args[1:])
	default:
		return fmt.Errorf("unknown comparison %q: expected net, cost or profile", what)
	}
}

// builds are the two source trees.
type builds struct {
	*options
	root string // of this tree
	tree string // of the older one
}

// checkOut writes the older commit, if there is one, into a folder.
func checkOut(ctx context.Context, o *options) (*builds, error) {
	root, err := output(exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel"))
	if err != nil {
		return nil, err
	}
	b := &builds{options: o, root: strings.TrimSpace(root), tree: filepath.Join(o.dir, "old")}
	if o.old == "" {
		return b, nil
	}
	if err := os.Mkdir(b.tree, 0o700); err != nil {
		return nil, err
	}
	archive := filepath.Join(o.dir, "old.tar")
	if _, err := output(exec.CommandContext(ctx, "git", "-C", b.root, "archive", "-o", archive, o.old)); err != nil {
		return nil, err
	}
	_, err = output(exec.CommandContext(ctx, "tar", "-xf", archive, "-C", b.tree))
	return b, err
}

// build builds a package of a module. Packages that are equal in both trees are compiled once.
func build(ctx context.Context, out, module, pkg string, flags ...string) error {
	args := append([]string{"build", "-C", module, "-buildvcs=false", "-trimpath", "-o", out}, flags...)
	_, err := output(exec.CommandContext(ctx, "go", append(args, pkg)...))
	return err
}

// output is what a command prints. Its error has what the command printed to standard error.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(exit.Stderr))
	}
	return string(out), err
}
