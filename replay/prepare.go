package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire"
)

// session is a recorded session made ready: everything about it that does not
// depend on a policy, computed once and only read afterwards.
type session struct {
	id    string
	log   *furl.Log
	codec protocol.Codec
	// requests in recorded order; byExchange finds them by record.
	requests   []*request
	byExchange map[furl.Seq]*request
	// sizes turns counted tokens into the provider's, as fitted to what the
	// whole recording reports.
	sizes token.Calibration
	// pieces are the messages as recorded, by record.
	pieces  []rendered
	counter furl.Counter
	recall  *recall.Index
	// summary is how long the recording's own summaries are, in counted
	// tokens.
	summary int
	// preamble is the least that was sent beside the messages, in the
	// provider's tokens: what of request.fixed is instructions and tools.
	preamble int

	reportedPeak, estimatedPeak int
}

// request is one recorded request and what came back.
type request struct {
	seq    furl.Seq // of its Exchange
	at     time.Time
	model  furl.Model
	known  bool // to the catalogue
	ex     *furl.Exchange
	output int // tokens of the reply, the provider's
	said   token.Part
	reply  *fidelity.Reply
	// shown is what the request held as recorded; fixed what it had beside
	// that, in the provider's tokens: instructions, tools, and whatever else
	// is not recorded.
	shown token.Part
	fixed int
	// epoch is the newest recorded compaction before the request: what was
	// sent with the messages and not recorded lasts until the next.
	epoch furl.Seq
	// prefix and thinking are what new thinking was bound to, as recorded.
	prefix   furl.Digest
	thinking furl.Pos
}

// defaultSummary is how long a summary is where the recording has none.
const defaultSummary = 2000

// prepare walks a recorded session once.
func prepare(ctx context.Context, rec *transcript.Session, o *Options) (*session, error) {
	s := &session{
		id:         rec.ID,
		log:        rec.Log,
		codec:      wire.For(rec.Wire),
		byExchange: make(map[furl.Seq]*request),
		pieces:     make([]rendered, rec.Log.Len()+1),
		recall:     new(recall.Index),
	}
	if s.codec == nil {
		return nil, fmt.Errorf("session %s: no wire format %q", rec.ID, rec.Wire)
	}
	s.counter = o.counter(rec)
	w := walker{s: s, rec: rec, o: o, state: new(furl.State), preamble: preambleOf(rec, s.counter)}
	for seq := furl.Seq(1); int(seq) <= rec.Log.Len(); seq++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.record(rec.Log.At(seq)); err != nil {
			return nil, fmt.Errorf("session %s: %w", rec.ID, err)
		}
	}
	w.finish()
	return s, nil
}

// walker goes over a recording as it was.
type walker struct {
	s       *session
	rec     *transcript.Session
	o       *Options
	state   *furl.State
	epoch   furl.Seq
	track   fidelity.Tracker
	seen    fidelity.Seen
	meter   *token.Meter
	model   string // the meter's
	last    *request
	changed bool // the prompt changed in another way than by growing
	// preamble is what of the instructions and tools was recorded.
	preamble token.Part
	// summaries counts the recording's own summaries and their tokens.
	summaries, summaryTokens int
}

func (w *walker) record(r furl.Record) error {
	switch b := r.Body.(type) {
	case *furl.Message:
		b.Measure(w.s.counter)
		w.track.Add(b)
		w.size(b)
		for i := range b.Blocks {
			w.s.recall.Add(furl.Pos{Msg: r.Seq, Block: i}, slices.Collect(b.Blocks[i].Texts())...)
		}
		if err := w.s.asRecorded(r.Seq, b); err != nil {
			return err
		}
	case *furl.Reduction:
		w.reduction(r.Seq, b)
	case *furl.Takeover:
		for _, body := range b.Taken() {
			if red, ok := body.(*furl.Reduction); ok {
				w.takenOver(r.Seq, red)
			}
		}
	case *furl.Exchange:
		w.request(r, b)
	case *furl.Head:
		return w.rewind(r.Parent)
	}
	return w.state.Apply(w.asSent(r))
}

// asSent gives a record of the recording as a run appends it: a request to a
// model that binds thinking with what it was bound to.
func (w *walker) asSent(r furl.Record) furl.Record {
	if q := w.s.byExchange[r.Seq]; q != nil {
		ex := *q.ex
		ex.View, ex.Thinking = q.prefix, q.thinking
		r.Body = &ex
	}
	return r
}

// takenOver notes what a reduction that was recorded on another branch changes.
func (w *walker) takenOver(seq furl.Seq, red *furl.Reduction) {
	w.changed = true
	for _, it := range red.Items {
		if _, ok := it.Show.(furl.Mark); ok {
			w.epoch = seq
		}
	}
}

// reduction notes what a recorded reduction changes beside the view.
func (w *walker) reduction(seq furl.Seq, red *furl.Reduction) {
	w.changed = true
	for _, it := range red.Items {
		if mark, ok := it.Show.(furl.Mark); ok {
			w.epoch = seq
			for _, m := range mark.Messages {
				m.Measure(w.s.counter)
			}
		}
	}
	if red.Summary != nil && red.Summary.Text != "" {
		w.summaries++
		w.summaryTokens += w.s.counter.Count(red.Summary.Text)
	}
}

// rewind makes the walk go on from a record.
func (w *walker) rewind(to furl.Seq) error {
	state := new(furl.State)
	for _, r := range w.s.log.Path(to) {
		if err := state.Apply(w.asSent(r)); err != nil {
			return err
		}
	}
	w.state, w.changed, w.epoch = state, true, 0
	w.track.Truncate(state.Len())
	for red := range state.Reductions() {
		for _, it := range red.Items {
			if _, ok := it.Show.(furl.Mark); ok {
				w.epoch = red.Seq
			}
		}
	}
	return nil
}

// written takes the output of the last request from the meter, once its reply
// was added: recorded counts may be those of a reply that had only begun.
func (w *walker) written() {
	if w.last != nil && w.last.ex.Usage.Prompt() > 0 {
		w.last.output = w.meter.Reply()
	}
}

// preambleOf counts the instructions and tools that were recorded.
func preambleOf(rec *transcript.Session, c furl.Counter) token.Part {
	m := furl.Message{Blocks: slices.Clone(rec.Preamble)}
	m.Measure(c)
	return token.PartOf(m.Blocks)
}

// size adds a message to the meter.
func (w *walker) size(m *furl.Message) {
	if w.meter != nil {
		w.meter.Message(m)
	}
}

// report estimates the prompt of a request before it learns what was reported
// for it.
func (w *walker) report(q *request, v *furl.View) {
	switch {
	case w.meter == nil:
		w.meter = newMeter(&q.model)
		w.changed = true
	case w.model != q.ex.Model:
		w.meter.Switch(&q.model)
	}
	if w.changed {
		w.meter.Rebase(w.preamble.Plus(token.PartOfView(v)))
	}
	w.model, w.changed = q.ex.Model, false
	w.s.estimatedPeak = max(w.s.estimatedPeak, w.meter.Estimate())
	w.s.reportedPeak = max(w.s.reportedPeak, q.ex.Usage.Prompt())
	w.meter.Report(q.ex.Usage)
	q.shown = token.PartOfView(v)
}

func newMeter(m *furl.Model) *token.Meter {
	meter := token.NewMeter(m)
	return &meter
}

// request notes a recorded request and what its reply takes up.
func (w *walker) request(r furl.Record, ex *furl.Exchange) {
	q := &request{seq: r.Seq, at: r.At, ex: ex, output: ex.Usage.Output, epoch: w.epoch}
	q.model, q.known = w.o.model(ex.Model, w.rec.Wire)
	var reply []*furl.Message
	for seq := r.Seq + 1; int(seq) <= w.s.log.Len(); seq++ {
		m, ok := w.s.log.At(seq).Body.(*furl.Message)
		if !ok || m.Role != furl.RoleAssistant {
			break
		}
		m.Measure(w.s.counter)
		reply = append(reply, m)
		q.said = q.said.Plus(token.PartOf(m.Blocks))
	}
	w.written()
	view := w.state.View(q.model)
	if q.model.Thinking.Binds {
		q.prefix, q.thinking = view.Prefix(), view.LastThinking
	}
	full := w.track.Reply(reply...)
	w.seen.Look(full, view)
	q.reply = w.seen.Reply()
	w.report(q, view)
	w.last = q
	w.s.requests = append(w.s.requests, q)
	w.s.byExchange[r.Seq] = q
}

func (w *walker) finish() {
	s := w.s
	w.written()
	if w.meter == nil {
		m, _ := w.o.model(w.rec.Model, w.rec.Wire)
		w.meter = newMeter(&m)
	}
	s.sizes = w.meter.Calibration()
	for i, q := range s.requests {
		q.fixed = s.sizes.Estimate(w.preamble)
		if reported := q.ex.Usage.Prompt(); reported > 0 {
			q.fixed = max(0, reported-s.sizes.Added(q.shown))
		} else if said := s.sizes.Added(q.said); 10*q.output < 7*said { // not reported, or when the reply had only begun
			q.output = said
		}
		if i == 0 || q.fixed < s.preamble {
			s.preamble = q.fixed
		}
	}
	s.summary = defaultSummary
	if w.summaries > 0 {
		s.summary = w.summaryTokens / w.summaries
	}
}
