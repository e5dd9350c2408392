// Package tui is the terminal screen of furl chat. It shows a conversation and reads
// what the user types.
//
// Finished entries are printed into the terminal's scrollback. Below them is a frame of
// a few lines: the end of the reply that arrives, the input, and the status. Bubble Tea
// reads the keys and runs the event loop; see screen for why it does not draw.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
)

// Options are the options of Run. The zero value is useful.
type Options struct {
	// In and Out are the terminal. If nil, os.Stdin and os.Stdout.
	In  io.Reader
	Out io.Writer
	// History is a file for the inputs of the user, with mode 0600. If empty, they are
	// kept until Run returns.
	History string
	// First is input to send at once, as if the user had typed it.
	First []agent.Input
	// Width and Height are the size if Out is not a terminal. If zero, 80 and 24.
	Width, Height int
	// Environ is the environment. If nil, os.Environ().
	Environ []string
	// Logger logs what cannot be shown, never the content of messages. If nil, nothing
	// is logged.
	Logger *slog.Logger

	now func() time.Time // the clock; if nil, time.Now
}

// Run shows a conversation until the user quits or ctx ends. Then it interrupts what
// runs, waits for it, and restores the terminal.
func Run(ctx context.Context, conv chat.Conversation, opts Options) error {
	if opts.In == nil {
		opts.In = os.Stdin
	}
	if opts.Out == nil {
		opts.Out = os.Stdout
	}
	if opts.Environ == nil {
		opts.Environ = os.Environ()
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Width == 0 || opts.Height == 0 {
		opts.Width, opts.Height = 80, 24
	}
	getenv := environment(opts.Environ)
	h, err := openHistory(opts.History)
	if err != nil {
		opts.Logger.Warn("input history", "error", err)
	}
	runs, cancel := context.WithCancel(ctx)
	m := newModel(runs, conv, h, signsFor(getenv))
	m.getenv, m.in, m.out, m.log, m.first = getenv, opts.In, opts.Out, opts.Logger, opts.First
	if opts.now != nil {
		m.now = opts.now
	}
	colors := &colorprofile.Writer{Forward: opts.Out, Profile: max(colorprofile.ASCII, colorprofile.Detect(opts.Out, opts.Environ))}
	s := &screen{w: colors}
	m.display = s
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(opts.In), tea.WithOutput(silent(opts.Out)),
		tea.WithWindowSize(opts.Width, opts.Height), tea.WithEnvironment(opts.Environ))
	m.send = p.Send
	s.open()
	_, err = p.Run()
	cancel()
	for _, q := range m.questions {
		q.ask.answer <- answered{err: errQuit}
	}
	m.jobs.Wait()
	s.close()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("chat: %w", context.Cause(ctx))
	case err != nil && !errors.Is(err, tea.ErrInterrupted):
		return fmt.Errorf("chat: %w", err)
	case s.err != nil:
		return fmt.Errorf("write to the terminal: %w", s.err)
	}
	return nil
}

// environment looks up variables as os.Getenv does.
func environment(environ []string) func(string) string {
	vars := map[string]string{}
	for _, v := range environ {
		for i := range v {
			if v[i] == '=' {
				vars[v[:i]] = v[i+1:]
				break
			}
		}
	}
	return func(name string) string { return vars[name] }
}

// silent returns an output for Bubble Tea that writes nothing: it sets the terminal to
// raw mode and reads its size, and screen draws.
func silent(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return silentFile{f}
	}
	return io.Discard
}

type silentFile struct{ *os.File }

func (silentFile) Write(p []byte) (int, error)       { return len(p), nil }
func (silentFile) WriteString(s string) (int, error) { return len(s), nil }
func (silentFile) Close() error                      { return nil }
