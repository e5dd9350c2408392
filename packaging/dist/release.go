package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// release is one build of all files of a release.
type release struct {
	options
	stage string // folder for files that go into the archives and packages

	version  string    // such as v1.2.3, as the binary reports it
	time     time.Time // of the commit: the time of every file
	binaries map[system]*buildinfo.BuildInfo
}

// moduleVersion is the version without "v", as packages name it.
func (r *release) moduleVersion() string { return strings.TrimPrefix(r.version, "v") }

// binary is the path of the binary for a system.
func (r *release) binary(s system) string {
	return filepath.Join(r.stage, s.os+"-"+s.arch, s.program())
}

// compile builds the binary for a system, and takes the version and the time from it.
func (r *release) compile(ctx context.Context, s system) error {
	fmt.Println("building", s)
	path, err := filepath.Abs(r.binary(s))
	if err != nil {
		return err
	}
	cmd := r.goCommand(ctx, "build", "-buildvcs=true", "-trimpath", "-ldflags=-s -w -buildid=", "-o", path, "./cmd/furl")
	cmd.Env = append(cmd.Env, "GOOS="+s.os, "GOARCH="+s.arch, "CGO_ENABLED=0")
	if err := run(cmd); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the build information of %s: %w", s, err)
	}
	setting := func(key string) string {
		for _, b := range info.Settings {
			if b.Key == key {
				return b.Value
			}
		}
		return ""
	}
	committed, err := time.Parse(time.RFC3339, setting("vcs.time"))
	if err != nil || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return fmt.Errorf("the binary for %s has no version: build it in a clone by git (a linked worktree is not enough), with git installed", s)
	}
	if r.version == "" {
		r.version, r.time, r.binaries = info.Main.Version, committed.UTC(), map[system]*buildinfo.BuildInfo{}
		fmt.Println("version", r.version)
		if setting("vcs.modified") == "true" {
			fmt.Println("note: the checkout has changes that are not committed")
		}
	}
	if info.Main.Version != r.version {
		return fmt.Errorf("the binary for %s has the version %s, another one %s: the checkout changed during the build", s, info.Main.Version, r.version)
	}
	r.binaries[s] = info
	return nil
}

// goCommand is a command of Go in the source folder, without the settings of this
// machine that change what it builds.
func (r *release) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.source
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GOFLAGS", "GOEXPERIMENT", "GOAMD64", "GOARM64", "GOFIPS140", "GOOS", "GOARCH", "CGO_ENABLED", "GOWORK":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	return cmd
}

// run runs a command. Its output is in the error if it fails.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// prepare writes the files that all systems have in common to the stage: the manual,
// completion scripts, the example configuration, licences, service files.
func (r *release) prepare(ctx context.Context) error {
	shared := filepath.Join(r.stage, "shared")
	absolute, err := filepath.Abs(shared)
	if err != nil {
		return err
	}
	epoch := fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix())
	manual := r.goCommand(ctx, "run", "-trimpath", "./internal/dev/house/manual", absolute)
	manual.Env = append(manual.Env, epoch, "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if err := run(manual); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "contrib/server.yaml", "contrib/furl.service", "contrib/furl-server.service"} {
		text, err := os.ReadFile(filepath.Join(r.source, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".service") {
			text = packaged(text)
		}
		if err := os.WriteFile(filepath.Join(shared, filepath.Base(name)), text, 0o644); err != nil {
			return err
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(shared, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	licences, err := r.licences(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(shared, "THIRD-PARTY-LICENSES.txt"), licences, 0o644); err != nil {
		return err
	}
	return r.compressManual(shared)
}

// packaged is a service file with the path at which packages install the binary.
func packaged(unit []byte) []byte {
	for _, path := range []string{"/usr/local/bin/furl", "%h/.local/bin/furl"} {
		unit = bytes.ReplaceAll(unit, []byte("ExecStart="+path+" "), []byte("ExecStart=/usr/bin/furl "))
	}
	return unit
}

// compressManual writes a compressed copy of each manual page, for packages.
func (r *release) compressManual(shared string) error {
	pages, err := filepath.Glob(filepath.Join(shared, "man", "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(page+".gz", out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// licences returns the licence texts of all modules in the binaries, which must
// accompany them.
func (r *release) licences(ctx context.Context) ([]byte, error) {
	paths := map[string]bool{}
	for _, info := range r.binaries {
		for _, m := range info.Deps {
			paths[m.Path] = true
		}
	}
	names := []string{}
	for path := range paths {
		names = append(names, path)
	}
	slices.Sort(names)
	cmd := r.goCommand(ctx, append([]string{"list", "-m", "-json=Path,Version,Dir"}, names...)...)
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules: %w", err)
	}
	var out bytes.Buffer
	root := cmp.Or(strings.TrimSpace(os.Getenv("GOROOT")), goRoot(ctx))
	if err := addLicence(&out, "Go's standard library", root); err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(list)); ; {
		var m struct{ Path, Version, Dir string }
		if err := dec.Decode(&m); err == io.EOF {
			return out.Bytes(), nil
		} else if err != nil {
			return nil, fmt.Errorf("list the modules: %w", err)
		}
		if err := addLicence(&out, m.Path+" "+m.Version, m.Dir); err != nil {
			return nil, err
		}
	}
}

func goRoot(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// addLicence appends the licence files in a module's folder.
func addLicence(out *bytes.Buffer, title, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the licence of %s: %w", title, err)
	}
	found := false
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "NOTICE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(out, "==== %s: %s ====\n\n%s\n\n", title, e.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no licence file in %s", title, dir)
	}
	return nil
}
