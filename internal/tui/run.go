package tui

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
)

// job is a run, or a slash command.
type job struct {
	cancel  context.CancelFunc
	started time.Time
	name    string       // what it does, if nothing else is known
	calls   []agent.Call // that run
	writing string       // the tool of the call that the model writes
	own     []string     // the inputs that were printed when the run started
	stopped bool         // the user has interrupted it
	failed  bool
	after   func() string // returns what a command prints at the end, nil for nothing
	pending []held        // markers that wait for the size of the context
}

// doing says what a job does.
func (j *job) doing() string {
	switch {
	case len(j.calls) == 1:
		return callTitle(j.calls[0])
	case len(j.calls) > 1:
		var names []string
		for _, c := range j.calls {
			names = append(names, label(c.Name))
		}
		return fmt.Sprintf("%d calls: %s", len(names), strings.Join(names, ", "))
	case j.writing != "":
		return "Writing a call of " + label(j.writing)
	}
	return j.name
}

// queued is input that was sent during a run.
type queued struct {
	draft draft
	text  string // as sent
}

type (
	runEvent struct {
		job   *job
		event agent.Event
		err   error
	}
	runEnded       struct{ job *job }
	commandReplied struct {
		job   *job
		ctx   context.Context
		reply chat.Reply
	}
	entriesLoaded struct {
		list   []chat.Entry
		before int
		err    error
	}
	meterRead struct {
		meter chat.Meter
		err   error
	}
)

func (m *model) newJob() (context.Context, *job) {
	ctx, cancel := context.WithCancel(m.base)
	return ctx, &job{cancel: cancel, started: m.now()}
}

// startRun sends input to the model; without input it continues the last run.
func (m *model) startRun(inputs ...agent.Input) {
	ctx, j := m.newJob()
	for _, in := range inputs {
		m.printBlock(chat.User, userLines(headOf(in.Text, maxMarkdown), len(in.Media), m.width, m.signs))
		j.own = append(j.own, in.Text)
	}
	m.readRun(j, m.conv.Run(ctx, m.asker, inputs...))
}

// readRun reads the events of a run in a goroutine.
func (m *model) readRun(j *job, events iter.Seq2[agent.Event, error]) {
	m.run = j
	m.jobs.Go(func() {
		defer j.cancel()
		for e, err := range events {
			m.send(runEvent{j, e, err})
		}
		m.send(runEnded{j})
	})
}

// runEnded ends a run.
func (m *model) runEnded(j *job) {
	if m.run != j {
		return
	}
	m.endReply()
	m.showHeld(j, 0)
	if j.after != nil {
		m.printCommand(j.after())
	}
	m.run = nil
	m.info = m.conv.Info()
	m.readMeter()
	// Input that was sent at the very end is sent now, unless the user has stopped the run.
	pending := m.conv.TakePending()
	if len(pending) == 0 {
		m.queued = nil
		return
	}
	if !j.stopped && !j.failed {
		m.queued = nil
		m.startRun(pending...)
		return
	}
	m.unqueue(pending)
}

// takeBack puts the input that is not delivered back into the input line.
func (m *model) takeBack() bool {
	if len(m.queued) == 0 {
		return false
	}
	pending := m.conv.TakePending()
	m.unqueue(pending)
	return len(pending) > 0
}

// unqueue puts messages back into the input line, the first one first.
func (m *model) unqueue(pending []agent.Input) {
	for _, in := range slices.Backward(pending) {
		i := slices.IndexFunc(m.queued, func(q queued) bool { return q.text == in.Text })
		d := draft{text: in.Text}
		if i >= 0 {
			d = m.queued[i].draft
			m.queued = slices.Delete(m.queued, i, i+1)
		}
		m.input.take(d)
	}
	m.resizeInputs()
}

// stop interrupts the run and the command. It reports false if there are none.
func (m *model) stop() bool {
	stopped := false
	for _, j := range []*job{m.run, m.command} {
		if j != nil {
			j.stopped = true
			j.cancel()
			stopped = true
		}
	}
	return stopped
}

// submit sends what the user has typed.
func (m *model) submit() tea.Cmd {
	in := m.input.value()
	line := strings.TrimSpace(in.Text)
	if line == "" && len(in.Media) == 0 {
		if m.run == nil && m.command == nil && m.info.Resumable {
			m.startRun()
		}
		return nil
	}
	if chat.IsCommand(line) && len(in.Media) == 0 && !strings.Contains(line, "\n") {
		return m.startCommand(line)
	}
	d := m.input.draft()
	m.remember(in.Text)
	m.input.clear()
	if m.run != nil {
		m.queued = append(m.queued, queued{d, in.Text})
		m.conv.Send(in)
		return nil
	}
	m.startRun(in)
	return nil
}

// remember adds an input to the history.
func (m *model) remember(text string) {
	if err := m.history.add(text); err != nil {
		m.log.Warn("input history", "error", err)
	}
}

// startCommand runs a slash command in a goroutine.
func (m *model) startCommand(line string) tea.Cmd {
	if m.command != nil {
		m.note = "Another command runs. Wait for it, or press Esc."
		return nil
	}
	m.remember(line)
	m.input.clear()
	m.printBlock(chat.User, userLines(line, 0, m.width, m.signs))
	ctx, j := m.newJob()
	j.name = label(line)
	m.command = j
	width := m.width
	m.jobs.Go(func() {
		m.send(commandReplied{j, ctx, m.conv.Command(ctx, m.asker, line, width)})
	})
	return nil
}

// commandReplied shows the reply of a slash command.
func (m *model) commandReplied(msg commandReplied) tea.Cmd {
	j, r := msg.job, msg.reply
	m.command = nil
	m.printCommand(r.Text)
	switch {
	case r.Err == nil:
	case j.stopped && errors.Is(r.Err, context.Canceled):
		m.printNote("Interrupted.")
	default:
		m.printError(r.Err)
	}
	if r.Input != "" {
		m.input.clear()
		m.input.set(r.Input)
	}
	if r.Reload {
		m.info = m.conv.Info()
		m.foldables = nil
		m.printBlock(chat.Marker, []string{rule(m.info.Title, m.width, m.signs)})
		m.loadEntries()
	}
	m.info = m.conv.Info()
	m.readMeter()
	if r.Quit {
		m.quitting = true
	}
	switch {
	case r.Events == nil:
		j.cancel()
	case m.run == nil && !m.quitting:
		j.after = r.After
		m.readRun(j, r.Events)
	default:
		j.cancel()
		m.jobs.Go(func() {
			for range r.Events { // it ends at once: its context is canceled
			}
		})
		m.printWarning("The command needs the model. Run it again when the reply has ended.")
	}
	return nil
}

// printCommand prints the output of a slash command.
func (m *model) printCommand(text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		m.printBlock(chat.Marker, wrapStyled(onlyColors(strings.ReplaceAll(text, "\t", "    ")), m.width))
	}
}

// loadEntries reads the end of the session in a goroutine.
func (m *model) loadEntries() {
	m.loading = true
	m.jobs.Go(func() {
		list, before, err := m.conv.Entries(shownEntries)
		m.send(entriesLoaded{list, before, err})
	})
}

func (m *model) entriesLoaded(msg entriesLoaded) {
	m.loading = false
	if msg.err != nil {
		m.printError(fmt.Errorf("read the session: %w", msg.err))
		return
	}
	m.showEntries(msg.list, msg.before)
	if first := m.first; len(first) > 0 {
		m.first = nil
		m.startRun(first...)
	}
}

// readMeter reads the meter in a goroutine.
func (m *model) readMeter() {
	if m.metering {
		m.meterAgain = true
		return
	}
	m.metering, m.meterAgain = true, false
	m.jobs.Go(func() {
		meter, err := m.conv.Meter()
		m.send(meterRead{meter, err})
	})
}

func (m *model) meterRead(msg meterRead) {
	m.metering = false
	if m.meterAgain {
		m.readMeter()
	}
	if msg.err != nil {
		m.log.Warn("context meter", "error", msg.err)
		return
	}
	m.meter = &msg.meter
	if m.run == nil {
		m.warnNear()
	}
}

// warnNear prints a line when the context comes near the size at which the policy
// reduces it, once for each approach.
func (m *model) warnNear() {
	if m.meter == nil {
		return
	}
	s := share(*m.meter)
	if s < clearShare {
		m.warned = false
	}
	if s < warnShare || m.warned {
		return
	}
	m.warned = true
	what := "context window"
	if m.meter.Threshold > 0 {
		what = "size at which it is reduced"
	}
	m.printWarning(fmt.Sprintf("The context is at %d%% of the %s (%s of %s tokens).", int(s*100), what, tokens(m.meter.Size), tokens(limit(*m.meter))))
}
