package eval

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/fidelity"
)

// AddSession adds the measures of a recorded session's path to head, except those of
// its ledger (tokens and costs). records are all records of the session. model describes
// a model by its name in requests.
func (m *Measures) AddSession(records []furl.Record, head furl.Seq, model func(name string) furl.Model) error {
	m.Sessions++
	for i := range records {
		switch b := records[i].Body.(type) {
		case *furl.Exchange:
			for _, p := range b.Passes.All(b.Usage) {
				m.Output += p.Usage.Output
			}
			for _, step := range b.Plan {
				if step.Stage == event.StageRepair {
					m.Repaired++
					m.RepairTokens += step.After - step.Before
				}
			}
		case *furl.Reduction:
			m.Reductions++
		}
	}
	w := pathWalker{m: m, model: model, state: new(furl.State)}
	for _, r := range pathTo(records, head) {
		if err := w.record(r); err != nil {
			return err
		}
	}
	w.endReply()
	return nil
}

// pathTo returns the records of the path to head.
func pathTo(records []furl.Record, head furl.Seq) []furl.Record {
	n := 0
	for seq := head; seq > 0 && int(seq) <= len(records); seq = records[seq-1].Parent {
		n++
	}
	path := make([]furl.Record, n)
	for seq := head; n > 0; seq = records[seq-1].Parent {
		n--
		path[n] = records[seq-1]
	}
	return path
}

// pathWalker goes over a path and counts steps, repeated calls and blind edits.
type pathWalker struct {
	m     *Measures
	model func(string) furl.Model
	state *furl.State

	tracker  fidelity.Tracker
	seen     fidelity.Seen
	name     string          // of the model of the latest request
	view     *furl.View      // that the reply in progress answers
	replying []*furl.Message // its messages so far
}

func (w *pathWalker) record(r furl.Record) error {
	msg, isMessage := r.Body.(*furl.Message)
	reply := isMessage && msg.Role == furl.RoleAssistant
	if !reply {
		w.endReply()
	} else if len(w.replying) == 0 {
		w.view = w.state.View(w.model(w.name))
	}
	if err := w.state.Apply(r); err != nil {
		return err
	}
	if e, ok := r.Body.(*furl.Exchange); ok {
		w.name = e.Model
	}
	switch {
	case reply:
		w.replying = append(w.replying, msg)
	case isMessage:
		w.tracker.Add(msg)
	}
	return nil
}

// endReply counts the reply in progress, if there is one.
func (w *pathWalker) endReply() {
	if len(w.replying) == 0 {
		return
	}
	calls := 0
	for _, msg := range w.replying {
		for i := range msg.Blocks {
			if b := &msg.Blocks[i]; b.Kind == furl.KindCall && !b.Own {
				calls++
			}
		}
	}
	w.m.Calls += calls
	if calls > 0 {
		w.m.Steps++
	}
	reply := w.tracker.Reply(w.replying...)
	w.m.Again += len(reply.Repeats)
	if len(reply.Repeats)+len(reply.Edits) > 0 {
		w.seen.Look(reply, w.view)
		c := w.seen.Count()
		w.m.Repeated += c.Refetches
		w.m.Edits += c.Edits
		w.m.Blind += c.BlindEdits
	}
	for _, msg := range w.replying {
		w.tracker.Add(msg)
	}
	w.replying = nil
}

// validText is text with invalid UTF-8 replaced.
func validText(data []byte) string { return strings.ToValidUTF8(string(data), "\uFFFD") }
