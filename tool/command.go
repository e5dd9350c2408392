package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/numbers"
)

// maxTimeout is the longest time of a command, in seconds.
const maxTimeout = 3600

type commandInput struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

func (f *Folder) commandTool() Tool {
	seconds := int((f.o.Timeout + time.Second - 1) / time.Second)
	return define(Tool{
		Name: "run_command",
		Description: fmt.Sprintf("Run a command line with %s in the working folder. The result has the output, standard error included, and the exit code. "+
			"There is no input and no terminal. Processes in the background end with the command. Environment variables with credentials are not set.", shellName),
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"command":{"type":"string","description":"Command line to run."},`+
			`"timeout":{"type":"integer","minimum":1,"maximum":%d,"description":"Maximum time in seconds. Default: %d."}`+
			`},"required":["command"],"additionalProperties":false}`, maxTimeout, seconds)),
		Changes: true,
	}, func(_ context.Context, in commandInput) (Preview, error) {
		return Preview{
			Title:   "Run a command",
			Command: in.Command,
			Note:    "The command is not confined to the working folder: it has all rights of your user. Files that it changes cannot be put back.",
		}, in.check()
	}, f.run)
}

func (in *commandInput) check() error {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return errors.New("command is empty: expected a command line")
	case strings.ContainsRune(in.Command, 0):
		return errors.New("command contains a zero byte")
	case in.Timeout < 0 || in.Timeout > maxTimeout:
		return fmt.Errorf("invalid timeout %d: expected 1 to %d seconds", in.Timeout, maxTimeout)
	}
	return nil
}

var errTimeout = errors.New("timeout")

// run runs a command. If ctx ends, the result says so and has the output so far.
func (f *Folder) run(ctx context.Context, in commandInput) (Result, error) {
	if err := in.check(); err != nil {
		return Result{}, err
	}
	if _, err := f.root.Stat("."); err != nil {
		return Result{}, fmt.Errorf("the working folder cannot be used: %w", err)
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	timeout := f.o.Timeout
	if in.Timeout > 0 {
		timeout = time.Duration(in.Timeout) * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	out := &headTail{half: f.o.MaxOutput / 2}
	cmd := shell(ctx, in.Command)
	cmd.Dir = f.real
	cmd.Env = append(environment(os.Environ(), f.o.Environment), "PWD="+f.real)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { stopGroup(cmd.Process); return nil }
	// Processes in the background may keep the output open.
	cmd.WaitDelay = time.Second
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
		stopRest(cmd.Process)
	}
	state := cmd.ProcessState // nil if the command has not started
	failed := state == nil || !state.Success()
	var note string
	switch {
	case failed && context.Cause(ctx) == errTimeout:
		note = fmt.Sprintf("Stopped: the command took more than %v", timeout)
	case failed && ctx.Err() != nil:
		note = "Interrupted: the command was stopped"
	case state == nil || !failed && err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return Result{}, fmt.Errorf("run the command with %s: %w", shellName, err)
	case state.ExitCode() < 0:
		note = "Stopped by " + state.String()
	default:
		note = fmt.Sprintf("Exit code: %d", state.ExitCode())
	}
	text := out.String()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	r := Text(text + "[" + note + "]")
	r.Error = failed
	return r, nil
}

// headTail keeps the start and the end of what is written to it.
type headTail struct {
	half       int
	head, tail []byte
	total      int64
}

func (b *headTail) Write(p []byte) (int, error) {
	n := len(p)
	b.total += int64(n)
	keep := min(len(p), b.half-len(b.head))
	b.head = append(b.head, p[:keep]...)
	p = p[keep:]
	p = p[max(0, len(p)-b.half):]
	if len(b.tail)+len(p) > 2*b.half {
		b.tail = append(b.tail[:0], b.tail[len(b.tail)-b.half:]...)
	}
	b.tail = append(b.tail, p...)
	return n, nil
}

// String returns the output as valid text.
func (b *headTail) String() string {
	tail := b.tail[max(0, len(b.tail)-b.half):]
	omitted := b.total - int64(len(b.head)+len(tail))
	if omitted == 0 {
		return valid(slices.Concat(b.head, tail))
	}
	head := trimRune(b.head)
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) && len(tail) > b.half-utf8.UTFMax {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s\n[%s bytes omitted. To read all of the output, write it to a file.]\n%s",
		valid(bytes.TrimSuffix(head, []byte("\n"))), numbers.Thousands(omitted), valid(tail))
}

// credentialWords are the parts of names of variables that have credentials.
var credentialWords = lazyregexp.New(`(?i)(^|_|-)(API_?KEYS?|[A-Z]*KEYS?|[A-Z]*TOKENS?|[A-Z]*SECRETS?|[A-Z]*PASSWORDS?|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|CREDS|PAT|AUTH)(_|-|[0-9]|$)|^AWS_|^PGPASS`)

// environment returns the variables without those that look like credentials, except
// the ones named in keep.
func environment(all, keep []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return isCredential(name, value) && !slices.Contains(keep, name)
	})
}

func isCredential(name, value string) bool {
	if name == "SSH_AUTH_SOCK" { // a path
		return false
	}
	if credentialWords.MatchString(name) {
		return true
	}
	if !strings.Contains(value, "://") {
		return false
	}
	u, err := url.Parse(value)
	if err != nil {
		return strings.Contains(value, "@")
	}
	_, password := u.User.Password()
	return password
}
