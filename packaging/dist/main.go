// Command dist builds what a release of furl has: an archive for each system, deb and
// rpm packages, npm packages, a Homebrew formula, a software bill of materials (SBOM)
// for each system, and SHA256SUMS. The version is the one that Go derives from git's
// tags. The same commit and the same version of Go give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// options say what is built.
type options struct {
	source     string   // folder of furl's source, in a checkout by git
	out        string   // folder that is written; what it had is deleted
	systems    []system // which systems
	releaseURL string   // address of the folder with all releases, for the Homebrew formula; "": no formula
	fast       bool     // compress fast, for tests
}

// system is an operating system and an architecture, by Go's names.
type system struct{ os, arch string }

func (s system) String() string { return s.os + "/" + s.arch }

// program is the name of furl's binary.
func (s system) program() string {
	if s.os == "windows" {
		return "furl.exe"
	}
	return "furl"
}

// supported are the systems that furl is released for.
var supported = []system{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func main() {
	var o options
	var systems string
	flag.StringVar(&o.source, "source", ".", "`folder` of furl's source")
	flag.StringVar(&o.out, "out", "bin/dist", "`folder` to write to; its contents are deleted")
	flag.StringVar(&systems, "systems", "", "`systems` to build for, such as \"linux/amd64 darwin/arm64\" (default all)")
	flag.StringVar(&o.releaseURL, "release-url", "", "`address` that releases are downloaded from; without it there is no Homebrew formula")
	flag.Parse()
	err := errors.New("unexpected arguments: " + strings.Join(flag.Args(), " "))
	if flag.NArg() == 0 {
		o.systems, err = parseSystems(systems)
	}
	if err == nil && o.releaseURL != "" {
		err = checkURL(o.releaseURL)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := build(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// parseSystems reads a list such as "linux/amd64 darwin/arm64". An empty list is all.
func parseSystems(list string) ([]system, error) {
	var systems []system
	for name := range strings.FieldsSeq(list) {
		goos, arch, _ := strings.Cut(name, "/")
		s := system{goos, arch}
		if !slices.Contains(supported, s) {
			return nil, fmt.Errorf("unknown system %q: choose from %v", name, supported)
		}
		if !slices.Contains(systems, s) {
			systems = append(systems, s)
		}
	}
	if systems == nil {
		return supported, nil
	}
	return systems, nil
}

// checkURL accepts what can be quoted in a formula as it is.
func checkURL(address string) error {
	if !regexp.MustCompile(`^https?://[\w.:/~%@-]+$`).MatchString(address) {
		return fmt.Errorf("invalid release URL %q: expected an address such as https://example.com/furl/releases", address)
	}
	return nil
}

// build builds everything. Files that are needed on the way are in o.out/stage, which
// is deleted at the end.
func build(ctx context.Context, o options) error {
	if err := clearOut(o.out); err != nil {
		return err
	}
	stage := filepath.Join(o.out, "stage")
	defer os.RemoveAll(stage)
	r := &release{options: o, stage: stage}
	for _, s := range o.systems {
		if err := r.compile(ctx, s); err != nil {
			return err
		}
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for _, s := range o.systems {
		steps := []func(system) error{r.archive, r.npmPlatform, r.sbom}
		if s.os == "linux" {
			steps = append(steps, r.linuxPackages)
		}
		for _, step := range steps {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := step(s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
	}
	if err := r.npmMain(); err != nil {
		return err
	}
	if err := r.formula(); err != nil {
		return err
	}
	if err := os.RemoveAll(stage); err != nil {
		return err
	}
	return sums(o.out)
}

// clearOut deletes what an earlier build wrote. It refuses a folder with other files.
func clearOut(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, "furl") && name != "stage" && name != "SHA256SUMS" {
			return fmt.Errorf("write to %s: it has a file %s that is not of a release; choose an empty folder", dir, name)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}
