// Command cast records furl chat in tmux and writes docs/use/chat.cast, in version 2 of
// asciinema's format. It requires tmux and Go.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The size of the terminal, in columns and rows.
const columns, rows = 80, 24

const program = `package main

func main() { println("hello") }
`

const replies = `-- look --
text: I look at the program first.
call: read_file {"path":"main.go"}
-- edit --
text: I change the greeting and check the line.
call: edit_file {"path":"main.go","old":"hello","new":"good morning"}
-- run --
call: run_command {"command":"grep -n println main.go"}
-- end --
text: Done. ` + "`main.go`" + ` now prints **good morning**:

` + "```go\nfunc main() { println(\"good morning\") }\n```\n"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cast:", err)
		os.Exit(1)
	}
}

func run() error {
	home, err := os.MkdirTemp("", "cast")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }() // temporary
	furl, work := filepath.Join(home, "furl"), filepath.Join(home, "hello")
	if out, err := exec.Command("go", "build", "-o", furl, "./cmd/furl").CombinedOutput(); err != nil {
		return fmt.Errorf("build furl: %w: %s", err, out)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"hello/main.go": program, "hello/go.mod": "module hello\n", "replies.txtar": replies, "config.yaml": ""} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	c := &cast{home: home}
	defer func() { _, _ = c.tmux("kill-server") }() // it may have ended
	pipe := filepath.Join(home, "output")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		return fmt.Errorf("make a pipe: %w: %s", err, out)
	}
	command := fmt.Sprintf("cd %s && sleep 1 && exec env HOME=%s LANG=C.UTF-8 FURL_DATA=%[2]s/data FURL_CONFIG=%[2]s/config.yaml FURL_STORE= %s chat --script ../replies.txtar", work, home, furl)
	if _, err := c.tmux("new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), command, ";", "pipe-pane", "-O", "cat > "+pipe); err != nil {
		return err
	}
	var reading sync.WaitGroup
	var failed error
	reading.Go(func() { failed = c.record(pipe) })
	if err := c.play(); err != nil {
		return err
	}
	reading.Wait()
	if failed != nil {
		return failed
	}
	return c.write("docs/use/chat.cast")
}

// cast is a recording.
type cast struct {
	home   string
	begin  time.Time // of the first output
	events []event
}

type event struct {
	at   time.Duration
	text string
}

func (c *cast) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-u", "-f", "/dev/null", "-S", filepath.Join(c.home, "tmux")}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// keyboard are sequences that set modes of the keyboard. Some players take them for
// colors.
var keyboard = regexp.MustCompile(`\x1b\[[<>][0-9;]*[mu]`)

// record reads the output until the program ends.
func (c *cast) record(pipe string) error {
	f, err := os.Open(pipe)
	if err != nil {
		return err
	}
	defer f.Close()
	var rest []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if c.begin.IsZero() {
				c.begin = time.Now()
			}
			rest = append(rest, buf[:n]...)
			whole := len(rest)
			for whole > 0 && len(rest)-whole < utf8.UTFMax && !utf8.Valid(rest[:whole]) {
				whole--
			}
			c.events = append(c.events, event{time.Since(c.begin), strings.ReplaceAll(keyboard.ReplaceAllString(string(rest[:whole]), ""), c.home, "~")})
			rest = append([]byte(nil), rest[whole:]...)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// play is what the user does.
func (c *cast) play() error {
	for _, step := range []func() error{
		c.wait(`❯`), c.typed("Change the greeting to good morning."),
		c.wait(`Edit main\.go\?`), c.pause(3 * time.Second), c.key("y"),
		c.wait(`Run a command\?`), c.pause(2500 * time.Millisecond), c.key("y"),
		c.wait(`now prints`), c.pause(2 * time.Second), c.typed("/context"),
		c.wait(`8 messages`), c.pause(3 * time.Second), c.typed("/rewind"),
		c.wait(`Go back to before`), c.pause(1500 * time.Millisecond), c.key("Enter"),
		c.wait(`Put back`), c.pause(3 * time.Second), c.key("y"),
		c.wait(`To undo this`), c.pause(3 * time.Second), c.key("C-u"), c.pause(500 * time.Millisecond), c.key("C-d"),
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cast) key(name string) func() error {
	return func() error {
		_, err := c.tmux("send-keys", name)
		return err
	}
}

func (c *cast) pause(d time.Duration) func() error {
	return func() error {
		time.Sleep(d)
		return nil
	}
}

func (c *cast) typed(text string) func() error {
	return func() error {
		for _, r := range text {
			if _, err := c.tmux("send-keys", "-l", "--", string(r)); err != nil {
				return err
			}
			time.Sleep(45 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		return c.key("Enter")()
	}
}

// wait waits until a line of the screen matches.
func (c *cast) wait(expr string) func() error {
	re := regexp.MustCompile("(?m)" + expr)
	return func() error {
		shown := ""
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			var err error
			if shown, err = c.tmux("capture-pane", "-p"); err != nil {
				return err
			}
			if re.MatchString(shown) {
				return nil
			}
		}
		return fmt.Errorf("no line matches %s; the screen:\n%s", expr, shown)
	}
}

func (c *cast) write(name string) error {
	var b strings.Builder
	line := func(v any) error {
		data, err := json.Marshal(v)
		b.Write(data)
		b.WriteByte('\n')
		return err
	}
	err := line(map[string]any{"version": 2, "width": columns, "height": rows, "title": "furl chat", "env": map[string]string{"TERM": "xterm-256color"}})
	for _, e := range c.events {
		if err != nil {
			return err
		}
		err = line([]any{float64(e.at.Milliseconds()) / 1000, "o", e.text})
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
