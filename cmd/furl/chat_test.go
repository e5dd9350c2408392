//go:build !windows

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the screens of the chat's scenarios")

// TestChat runs furl chat in a real terminal, tmux. A scenario in testdata/chat has the
// steps in its comment, the working folder's files, and the expected screens:
//
//	start ARGUMENTS     starts furl chat in a terminal of 80×24
//	size 200x60         resizes the terminal
//	type TEXT           types a text
//	keys NAME...        presses keys by tmux's names
//	paste FILE          pastes a file
//	wait REGEXP         waits until a line of the screen matches
//	gone REGEXP         waits until no line matches
//	answer NAME...      presses keys when a question has been visible for a moment
//	ended               waits until the program has ended
//	file NAME REGEXP    checks the content of a file
//	screen NAME         compares all that the terminal shows, with its scrollback
//
// With -update the screens are written.
func TestChat(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("FURL_NO_SKIP") != "" {
			t.Fatal("tmux is not installed")
		}
		t.Skip("tmux is not installed")
	}
	files, err := filepath.Glob("testdata/chat/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runScenario(t, file) })
	}
}

func runScenario(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	x := &chatTerminal{t: t, home: shortFolder(t), screens: make(map[string]string)}
	x.work = filepath.Join(x.home, "project")
	if err := os.MkdirAll(x.work, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "screen "); ok {
			x.screens[name] = string(f.Data)
			continue
		}
		name := filepath.Join(x.home, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		data := f.Data
		if strings.HasSuffix(f.Name, ".quoted") { // files with lines that txtar would take for its own
			name = strings.TrimSuffix(name, ".quoted")
			data = regexp.MustCompile(`(?m)^>`).ReplaceAll(data, nil)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			x.at = fmt.Sprintf("%s:%d: %s", file, i+1, line)
			x.step(line)
		}
	}
	if *update {
		for i, f := range archive.Files {
			if name, ok := strings.CutPrefix(f.Name, "screen "); ok {
				archive.Files[i].Data = []byte(x.got(name))
			}
		}
		for _, name := range x.order {
			if _, ok := x.screens[name]; !ok {
				archive.Files = append(archive.Files, txtar.File{Name: "screen " + name, Data: []byte(x.got(name))})
			}
		}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shortFolder returns a folder whose name has always the same length, because the chat
// shows it.
func shortFolder(t *testing.T) string {
	t.Helper()
	for n := os.Getpid() % 100_000; ; n = (n + 1) % 100_000 {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("chat%05d", n))
		err := os.Mkdir(dir, 0o700)
		switch {
		case err == nil:
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return dir
		case !errors.Is(err, fs.ErrExist):
			t.Fatal(err)
		}
	}
}

// chatTerminal is a terminal in which furl chat runs.
type chatTerminal struct {
	t          *testing.T
	home, work string
	at         string // the step
	screens    map[string]string
	order      []string
	shown      map[string]string
}

func (x *chatTerminal) got(name string) string { return x.shown[name] }

// tmux runs a command of the test's own tmux server.
func (x *chatTerminal) tmux(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-f", "/dev/null", "-S", filepath.Join(x.home, "tmux")}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + x.home, "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/sh"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		x.t.Fatalf("%s\ntmux %s: %v: %s", x.at, args[0], err, errs.String())
	}
	return out.String()
}

func (x *chatTerminal) step(line string) {
	x.t.Helper()
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "start":
		x.start(rest)
	case "size":
		w, h, _ := strings.Cut(rest, "x")
		x.tmux("resize-window", "-x", w, "-y", h)
	case "type":
		x.tmux("send-keys", "-l", "--", rest)
	case "keys":
		x.tmux(append([]string{"send-keys"}, strings.Fields(rest)...)...)
	case "answer":
		// The chat ignores keys that were typed before a person can have read the
		// question. The step before has seen it.
		time.Sleep(700 * time.Millisecond)
		x.tmux(append([]string{"send-keys"}, strings.Fields(rest)...)...)
	case "paste":
		x.tmux("load-buffer", filepath.Join(x.home, rest))
		x.tmux("paste-buffer", "-p", "-r")
	case "wait":
		x.until(rest, true)
	case "gone":
		x.until(rest, false)
	case "ended":
		x.poll("the program to end", func() bool { return strings.TrimSpace(x.tmux("display-message", "-p", "#{pane_dead}")) == "1" })
	case "file":
		file, expr, _ := strings.Cut(rest, " ")
		data, err := os.ReadFile(filepath.Join(x.home, file))
		if err != nil || !regexp.MustCompile(expr).Match(data) {
			x.t.Errorf("%s: got %q, error %v", x.at, data, err)
		}
	case "screen":
		x.screen(rest)
	default:
		x.t.Fatalf("%s: unknown step", x.at)
	}
}

func (x *chatTerminal) start(args string) {
	x.t.Helper()
	if err := os.WriteFile(filepath.Join(x.home, "config.yaml"), nil, 0o600); err != nil {
		x.t.Fatal(err)
	}
	command := fmt.Sprintf("cd %s && exec env -i GORACE=atexit_sleep_ms=0 %s=1 HOME=%s PATH=\"$PATH\" TERM=\"$TERM\" LANG=C.UTF-8 FURL_DATA=%[3]s/data FURL_CONFIG=%[3]s/config.yaml GOMAXPROCS=2 %s chat %s",
		x.work, beFurl, x.home, os.Args[0], args)
	if x.shown == nil {
		x.shown = make(map[string]string)
		x.tmux("new-session", "-d", "-x", "80", "-y", "24", "sleep 600", ";",
			"set", "-g", "history-limit", "20000", ";", "set", "-g", "remain-on-exit", "on", ";",
			"set", "-g", "escape-time", "0", ";", "set", "-g", "window-size", "manual", ";", "set", "-g", "status", "off")
		x.t.Cleanup(func() { x.tmux("kill-server") })
	}
	x.tmux("send-keys", "-R", ";", "clear-history") // what a program before has shown
	x.tmux("respawn-pane", "-k", command)
}

// stepTime limits how long a step may take on a busy machine.
const stepTime = time.Minute

func (x *chatTerminal) poll(what string, done func() bool) {
	x.t.Helper()
	for end := time.Now().Add(stepTime); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatalf("%s: waited in vain for %s; the screen:\n%s", x.at, what, x.tmux("capture-pane", "-p"))
		}
	}
}

func (x *chatTerminal) until(expr string, want bool) {
	x.t.Helper()
	re := regexp.MustCompile("(?m)" + expr)
	x.poll(expr, func() bool { return re.MatchString(x.tmux("capture-pane", "-p")) == want })
}

// varying are parts of a screen that differ between runs.
var varying = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`(/resume\s+|--resume |session )[a-z0-9]{12}\b`), "${1}SESSIONIDXYZ"},
	{regexp.MustCompile(`(· |copy |chat-)[a-z0-9]{8}( ·|\.)`), "${1}SESSIONX${2}"},
	{regexp.MustCompile(`(?m)^Pane is dead .*$`), ""},
	{regexp.MustCompile(`(?m)^[a-z0-9]{12}, `), "SESSIONIDXYZ, "},
	{regexp.MustCompile(`(?m)^[a-z0-9]{8}  furl chat`), "SESSIONX  furl chat"},
	{regexp.MustCompile(`furl:[a-z0-9]{8,12}/`), "furl:SESSIONX/"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`), "2026-01-31 12:00"},
	{regexp.MustCompile(`(cache (?:expires in )?)\d+:\d\d`), "${1}M:SS"},
	{regexp.MustCompile(`\b[0-9]+(\.[0-9])?(ms|s)\b`), "0s"},
	{regexp.MustCompile(`(?m) · 0s$`), ""}, // a command's duration, shown from half a second on
}

// screen compares what the terminal shows when it has stopped changing.
func (x *chatTerminal) screen(name string) {
	x.t.Helper()
	want, got, same := x.screens[name], "", 0
	x.poll("a screen that does not change", func() bool {
		now := x.capture()
		if now != got {
			got, same = now, 0
			return false
		}
		same++
		// On a busy machine, the chat draws late.
		return same >= 10 && (*update || got == want) || same >= 250
	})
	x.shown[name], x.order = got, append(x.order, name)
	if !*update && got != want {
		x.t.Errorf("%s: the screen differs; go test -run %s -update writes it; got\n%s\nwant\n%s", x.at, strconv.Quote(x.t.Name()), got, want)
	}
}

// capture returns all that the terminal shows, with its scrollback, without what differs
// from run to run.
func (x *chatTerminal) capture() string {
	x.t.Helper()
	all := strings.ReplaceAll(x.tmux("capture-pane", "-p", "-J", "-S", "-"), x.work, "/project")
	for _, v := range varying {
		all = v.re.ReplaceAllString(all, v.to)
	}
	var lines []string
	for line := range strings.Lines(all) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}
