package chatcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/session"
)

// printRun sends a message, or runs a slash command, and prints the events without a
// screen: the reply on out, the rest on errs, or all as JSON lines on out.
func (c *chatRun) printRun(ctx context.Context, out, errs io.Writer, message string, asJSON bool) error {
	p := &plain{c: c, out: out, errs: errs}
	c.color = cmdline.Styled(out) && !asJSON
	if asJSON {
		p.json = json.NewEncoder(out)
		p.json.SetEscapeHTML(false)
	} else {
		for _, n := range c.Notices {
			fmt.Fprintln(errs, "furl: note:", n)
		}
	}
	if !chat.IsCommand(message) {
		return p.print(c.Run(ctx, nil, agent.Text(message)))
	}
	s := c.Session()
	records := s.Records(0)
	r := c.Command(ctx, nil, message, cmp.Or(cmdline.Width(out), cmdline.PlainColumns))
	if r.Err != nil {
		return r.Err
	}
	if r.Text != "" {
		if asJSON {
			p.line("output", map[string]any{"text": r.Text})
			if err := p.events(s, records); err != nil {
				return err
			}
		} else {
			fmt.Fprintln(out, r.Text)
		}
	}
	if r.Events == nil {
		return nil
	}
	if err := p.print(r.Events); err != nil || r.After == nil {
		return err
	}
	if text := r.After(); asJSON {
		p.line("output", map[string]any{"text": text})
	} else {
		fmt.Fprintln(out, text)
	}
	return nil
}

// plain prints events.
type plain struct {
	c         *chatRun
	out, errs io.Writer
	json      *json.Encoder // nil: text
	text      strings.Builder
	midLine   bool // the reply's last line has no newline yet
}

// line prints an event as a line of JSON.
func (p *plain) line(kind string, fields map[string]any) {
	fields["type"] = kind
	_ = p.json.Encode(fields) // the output returns the error when it is flushed
	_ = cmdline.Flush(p.out)  // the last flush returns the error as well
}

// events prints the events of what a slash command has added to the records of a session.
func (p *plain) events(s *session.Session, before []furl.Record) error {
	log := furl.NewLog()
	if err := log.Load(before); err != nil {
		return err
	}
	limit := s.Model(p.c.Agent().Model().ID).Window
	for _, rec := range s.Records(furl.Seq(len(before))) {
		for _, e := range event.Of(log.State(), rec, limit) {
			p.printJSON(agent.Context{Record: rec.Seq, Event: e})
		}
		if err := log.Load([]furl.Record{rec}); err != nil {
			return err
		}
	}
	return nil
}

func (p *plain) print(run iter.Seq2[agent.Event, error]) error {
	for e, err := range run {
		if err != nil {
			p.endLine()
			if p.json != nil {
				p.line("error", map[string]any{"error": err.Error(), "session": p.c.Session().ID()})
			}
			return err
		}
		if p.json != nil {
			p.printJSON(e)
		} else {
			p.printText(e)
		}
		if done, ok := e.(agent.Done); ok && done.MaxSteps {
			p.endLine()
			return errors.New("stopped at --max-steps before the model had ended; furl chat --resume " + string(p.c.Session().ID()) + " continues")
		}
	}
	return nil
}

func (p *plain) endLine() {
	if p.midLine {
		fmt.Fprintln(p.out)
		p.midLine = false
	}
	_ = cmdline.Flush(p.out) // the last flush returns the error as well
}

// note prints a line about what happens, which is not part of the reply.
func (p *plain) note(format string, args ...any) {
	p.endLine()
	fmt.Fprintln(p.errs, cmdline.Label(fmt.Sprintf(format, args...)))
}

func (p *plain) printText(e agent.Event) {
	switch e := e.(type) {
	case agent.TextDelta:
		text := e.Text
		if cmdline.Width(p.out) > 0 {
			text = cmdline.Printable(text)
		}
		fmt.Fprint(p.out, text)
		p.midLine = !strings.HasSuffix(text, "\n") && (text != "" || p.midLine)
		_ = cmdline.Flush(p.out) // the last flush returns the error as well
	case agent.Replied:
		p.endLine()
	case agent.CallStarted:
		p.note("%s %s", e.Call.Name, cmdline.Truncate(string(e.Call.Input), 100))
	case agent.CallResult:
		if e.Result.Error {
			line, _, _ := strings.Cut(e.Result.Text(), "\n")
			p.note("%s failed: %s", e.Call.Name, cmdline.Truncate(strings.TrimPrefix(line, "Error: "), 100))
		}
	case agent.Retry:
		p.note("request failed, attempt %d in %s: %v", e.Attempt+1, e.Wait, e.Err)
	case agent.SummaryFailed:
		p.note("no summary: %v", e.Err)
	case agent.Context:
		if text, _, _ := chat.Describe(e.Event, 0); text != "" {
			p.note("%s", text)
		}
	}
}

func (p *plain) printJSON(e agent.Event) {
	switch e := e.(type) {
	case agent.TextDelta:
		p.line("text_delta", map[string]any{"text": e.Text})
	case agent.ThinkingDelta:
		p.line("thinking_delta", map[string]any{"text": e.Text})
	case agent.Replied:
		p.text.Reset()
		p.text.WriteString(e.Text)
		p.line("reply", map[string]any{"model": e.Model, "stop": e.Stop, "text": e.Text, "prompt_tokens": e.Usage.Prompt(), "output_tokens": e.Usage.Output})
	case agent.CallStarted:
		p.line("call", map[string]any{"id": e.Call.ID, "name": e.Call.Name, "input": e.Call.Input})
	case agent.CallResult:
		p.line("result", map[string]any{"id": e.Call.ID, "name": e.Call.Name, "text": e.Result.Text(), "is_error": e.Result.Error, "ms": e.Took.Milliseconds()})
	case agent.Delivered:
		p.line("message", map[string]any{"record": e.Record, "text": e.Input.Text})
	case agent.Retry:
		p.line("retry", map[string]any{"attempt": e.Attempt, "wait_ms": e.Wait.Milliseconds(), "error": e.Err.Error()})
	case agent.SummaryStarted:
		p.line("summary_started", map[string]any{"model": e.Model})
	case agent.SummaryFailed:
		p.line("summary_failed", map[string]any{"error": e.Err.Error()})
	case agent.Context:
		p.line("context", map[string]any{"record": e.Record, "name": e.Event.Name(), "event": e.Event})
	case agent.Done:
		u := p.c.Session().Context(p.c.Agent().Model().ID)
		p.line("done", map[string]any{"session": p.c.Session().ID(), "stop": e.Stop, "max_steps": e.MaxSteps, "text": p.text.String(), "context_tokens": u.Size, "context_limit": u.Limit})
	}
}
