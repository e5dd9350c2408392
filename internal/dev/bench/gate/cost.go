package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// cost compares what both builds of furl cost, by turns: package gateway has the measurements. Flags
// of that program, such as -sizes 57, may follow.
func (b *builds) cost(ctx context.Context, more []string) error {
	bench, err := b.buildBench(ctx)
	if err != nil {
		return err
	}
	for side, tree := range map[string]string{"old": b.tree, "new": b.root} {
		if err := build(ctx, filepath.Join(b.dir, "furl-"+side), tree, "./cmd/furl", "-ldflags", "-s -w"); err != nil {
			return fmt.Errorf("build the %s furl: %w", side, err)
		}
	}
	return attached(exec.CommandContext(ctx, bench, append([]string{"-furl", filepath.Join(b.dir, "furl-new"), "-pair", filepath.Join(b.dir, "furl-old")}, more...)...))
}

// profiledMain is the main package of a furl that writes profiles: the first SIGUSR1 starts that of
// the processor, the second ends it. Both write what was allocated until then.
const profiledMain = `package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"

	"github.com/furlhq/furl/command"
)

func main() {
	if dir := os.Getenv("FURL_GATE_PROFILES"); dir != "" {
		runtime.MemProfileRate = 16 << 10
		go profile(dir)
	}
	os.Exit(command.Main(os.Args[1:], nil))
}

func profile(dir string) {
	wanted := make(chan os.Signal, 1)
	signal.Notify(wanted, syscall.SIGUSR1)
	allocated := func(name string) {
		runtime.GC()
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			pprof.Lookup("allocs").WriteTo(f, 0)
			f.Close()
		}
	}
	said := func(name string) { os.WriteFile(filepath.Join(dir, name), nil, 0o600) }
	<-wanted
	allocated("allocs-before")
	f, err := os.Create(filepath.Join(dir, "cpu"))
	if err != nil {
		return
	}
	pprof.StartCPUProfile(f)
	said("begun")
	<-wanted
	pprof.StopCPUProfile()
	f.Close()
	allocated("allocs")
	said("ended")
}
`

// profile writes profiles of this tree's furl into a folder, with their largest entries in
// profiles.txt: of the processor and of allocations, for the smallest and the largest body, under
// none and under auto.
func (b *builds) profile(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("expected a folder for the profiles")
	}
	folder, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	bench, err := b.buildBench(ctx)
	if err != nil {
		return err
	}
	main, overlay := filepath.Join(b.dir, "profiled-main.go"), filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(main, []byte(profiledMain), 0o600); err != nil {
		return err
	}
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(b.root, "cmd", "furl", "main.go"): main}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, replaced, 0o600); err != nil {
		return err
	}
	furl := filepath.Join(b.dir, "furl-profiled")
	if err := build(ctx, furl, b.root, "./cmd/furl", "-overlay", overlay); err != nil {
		return err
	}
	if err := attached(exec.CommandContext(ctx, bench, append([]string{"-furl", furl, "-profiles", folder}, args[1:]...)...)); err != nil {
		return err
	}
	return topOf(ctx, folder)
}

// topOf writes the largest entries of all profiles in a folder.
func topOf(ctx context.Context, folder string) error {
	out, err := os.Create(filepath.Join(folder, "profiles.txt"))
	if err != nil {
		return err
	}
	defer out.Close()
	dirs, err := filepath.Glob(filepath.Join(folder, "*", "ended"))
	if err != nil {
		return err
	}
	for _, ended := range dirs {
		dir := filepath.Dir(ended)
		before := "-base=" + filepath.Join(dir, "allocs-before")
		for _, show := range [][]string{
			{"-top", "-nodecount=45", filepath.Join(dir, "cpu")},
			{"-top", "-cum", "-nodecount=90", filepath.Join(dir, "cpu")},
			{"-sample_index=alloc_space", "-top", "-nodecount=40", before, filepath.Join(dir, "allocs")},
			{"-sample_index=alloc_space", "-top", "-cum", "-nodecount=70", before, filepath.Join(dir, "allocs")},
		} {
			text, err := output(exec.CommandContext(ctx, "go", append([]string{"tool", "pprof"}, show...)...))
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "==== %s: %s %s\n%s\n", filepath.Base(dir), filepath.Base(show[len(show)-1]), show[:len(show)-1], text)
		}
	}
	fmt.Println(out.Name())
	return nil
}

func (b *builds) buildBench(ctx context.Context) (string, error) {
	bench := filepath.Join(b.dir, "bench")
	return bench, build(ctx, bench, filepath.Join(b.root, benchModule), "./gateway")
}

// attached runs a command with the streams of this one.
func attached(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
