package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/chat"
)

// held is a marker whose event does not say how small the context has become. The next
// event does.
type held struct{ event event.Event }

// runEvent shows an event of a run. It reports whether drawing may wait for the next
// tick.
func (m *model) runEvent(msg runEvent) (lazy bool) {
	j := msg.job
	if m.run != j {
		return false
	}
	if msg.err != nil {
		m.endReply()
		m.showHeld(j, 0)
		j.failed = true
		switch {
		case j.stopped && errors.Is(msg.err, context.Canceled):
			m.printNote("Interrupted.")
		default:
			m.printError(msg.err)
		}
		return false
	}
	if c, ok := msg.event.(agent.Context); ok {
		m.contextEvent(j, c.Event)
		return false
	}
	m.showHeld(j, 0)
	switch e := msg.event.(type) {
	case agent.TextDelta:
		m.endThinking()
		for _, p := range m.stream.text(e.Text) {
			m.printBlock(chat.Text, m.markdown.render(p, m.width))
		}
		return true
	case agent.ThinkingDelta:
		m.stream.think(e.Text)
		return true
	case agent.CallWriting:
		m.endThinking()
		j.writing = e.Name
	case agent.Replied:
		streamed := m.stream.flushed || m.stream.paragraphs.rest != ""
		m.endReply()
		if !streamed && e.Text != "" {
			m.printBlock(chat.Text, m.markdown.render(e.Text, m.width))
		}
		j.writing = ""
		switch e.Stop {
		case "max_tokens", "length", "max_output_tokens":
			m.printWarning("The reply reached the output limit and is cut off.")
		}
		m.readMeter()
	case agent.CallStarted:
		j.calls = append(j.calls, e.Call)
	case agent.CallResult:
		j.calls = slices.DeleteFunc(j.calls, func(c agent.Call) bool { return c.ID == e.Call.ID })
		m.printBlock(chat.Call, callLines(e.Call, &e.Result, e.Took, m.width, m.signs))
		m.foldable(&folded{title: callTitle(e.Call), call: &e.Call, res: &e.Result})
	case agent.Delivered:
		m.delivered(j, e.Input)
	case agent.SummaryStarted:
		j.name = "Summarizing with " + label(e.Model)
	case agent.SummaryFailed:
		j.name = ""
		m.printWarning("Summary failed: " + e.Err.Error())
	case agent.Retry:
		void := m.stream.flushed
		m.stream.endThinking()
		m.stream.end()
		j.writing = ""
		text := fmt.Sprintf("Request failed: %v. Retry %d in %s.", e.Err, e.Attempt, e.Wait.Round(100*time.Millisecond))
		if void {
			text += " The unfinished reply above is void."
		}
		m.printWarning(text)
	case agent.Done:
		if e.MaxSteps {
			m.printWarning("The run has reached its limit of steps. Enter continues it.")
		}
	}
	return false
}

// endThinking prints the thinking that has arrived, folded.
func (m *model) endThinking() {
	if text := m.stream.endThinking(); text != "" {
		m.printBlock(chat.Thinking, thinkingLine(text, m.width, m.signs))
		m.foldable(&folded{title: "Thinking", text: headOf(text, maxUnfoldText)})
	}
}

// endReply prints what is left of the reply.
func (m *model) endReply() {
	m.endThinking()
	m.printBlock(chat.Text, m.markdown.render(m.stream.end(), m.width))
}

// delivered shows input that the session has recorded.
func (m *model) delivered(j *job, in agent.Input) {
	if i := slices.Index(j.own, in.Text); i >= 0 {
		j.own = slices.Delete(j.own, i, i+1)
		return // printed when the run started
	}
	if i := slices.IndexFunc(m.queued, func(q queued) bool { return q.text == in.Text }); i >= 0 {
		m.queued = slices.Delete(m.queued, i, i+1)
	}
	m.printBlock(chat.User, userLines(headOf(in.Text, maxMarkdown), len(in.Media), m.width, m.signs))
}

// contextEvent shows an event of the context.
func (m *model) contextEvent(j *job, e event.Event) {
	switch e := e.(type) {
	case event.ContextUsage:
		m.showHeld(j, e.CurrentSize)
		meter := chat.Meter{Window: e.Limit}
		if m.meter != nil {
			meter = *m.meter
		}
		meter.Size = e.CurrentSize
		m.meter = &meter
		m.warnNear()
	case event.Compacted, event.Truncated:
		j.name = ""
		m.showHeld(j, 0)
		j.pending = append(j.pending, held{e})
	default:
		m.showHeld(j, 0)
		m.showMarker(e, 0)
	}
}

// showHeld prints the markers that wait for the size of the context.
func (m *model) showHeld(j *job, after int) {
	for _, h := range j.pending {
		m.showMarker(h.event, after)
	}
	j.pending = nil
}

func (m *model) showMarker(e event.Event, after int) {
	line, text, warning := chat.Describe(e, after)
	switch {
	case line == "":
	case warning:
		m.printWarning(label(line))
	default:
		m.printBlock(chat.Marker, markerLines(line, m.width, m.signs))
		if text != "" {
			m.foldable(&folded{title: line, text: text})
		}
	}
}
