package replay

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire"
)

// session is a prepared recorded session: everything that does not depend on a
// policy, computed once and only read afterwards.
type session struct {
	id    string
	log   *furl.Log
	codec protocol.Codec
	// requests are in recorded order. byExchange maps their Exchange records.
	requests   []*request
	byExchange map[furl.Seq]*request
	// compactions are the agent's own that a model wrote, by their records.
	compactions map[furl.Seq]*compaction
	// sizes converts counted tokens into the provider's tokens. It is fitted to
	// the sizes that the whole recording reports, and prices the requests; policies
	// plan with request.fit.
	sizes token.Calibration
	// asked are the requests that continue others and whose cost is known. fitted is what the
	// prompts with reported usage cost as simulated with their hits, billed what they
	// cost, in dollars. The first run of policy none sets them.
	asked          []asked
	billed, fitted float64
	// sentAsRecorded is false if furl has hidden something in the recorded requests, so that their
	// usage is not that of policy none.
	sentAsRecorded bool
	// pieces are the messages as recorded, by record.
	pieces  []rendered
	counter furl.Counter
	// recall indexes the text of all messages, once a policy has hidden something
	// that is used again.
	recall func() *recall.Index
	// summary is the average length of the recording's own summaries, in
	// counted tokens.
	summary int
	// preamble is the size of instructions and tools, in the provider's
	// tokens: the smallest request.fixed.
	preamble int

	reportedPeak, estimatedPeak int

	// tools are the tools with a recorded definition, toolTokens their size, and calls the
	// number of calls by the name of the tool.
	tools      []DefinedTool
	toolTokens int
	calls      map[string]int
}

// request is one recorded request and its reply.
type request struct {
	seq    furl.Seq // of its Exchange
	at     time.Time
	model  furl.Model
	known  bool // model is in the catalogue
	long   bool // the client requests entries of one hour for the instructions
	again  bool // it is counted in another session
	ex     *furl.Exchange
	output int // of the reply, in the provider's tokens, as recorded
	// estimated is output, or its estimate if the agent recorded the count of an unfinished reply.
	estimated int
	passes    CostSplit  // of the provider's other passes for the request, as recorded
	said      token.Part // the reply as counted
	reply     *fidelity.Reply
	// shown is the size of the recorded messages. fixed is the size of the rest,
	// in the provider's tokens: instructions, tools, and anything else that is
	// not recorded.
	shown token.Part
	fixed int
	// fit converts sizes as it was known before the request, and fitFixed is fixed by it:
	// policies plan with them, because no later report is known then.
	fit      token.Calibration
	fitFixed int
	// epoch is the newest recorded compaction before the request. Parts that
	// were sent but not recorded last until the next one.
	epoch furl.Seq
	// prefix and thinking are the recorded values that new thinking is bound
	// to.
	prefix   furl.Digest
	thinking furl.Pos
	// hits is set by the run of policy none that comes before the others.
	hits hits
}

// defaultSummary is the length of summaries, in tokens, if the recording has none.
const defaultSummary = 2000 // summaryNote has this number

// prepare reads a recorded session once, in order.
func prepare(ctx context.Context, rec *transcript.Session, o *Options) (*session, error) {
	s := newSession(rec, o)
	if s.codec == nil {
		return nil, fmt.Errorf("session %s: unknown wire format %q", rec.ID, rec.Wire)
	}
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
	s.countTools(rec)
	return s, nil
}

// scaled converts counted tokens of text into the provider's tokens.
func (s *session) scaled(tokens int) int {
	return int(math.Round(float64(tokens) * s.sizes.Scale()))
}

func newSession(rec *transcript.Session, o *Options) *session {
	return &session{
		id:         rec.ID,
		log:        rec.Log,
		codec:      wire.For(rec.Wire),
		byExchange: make(map[furl.Seq]*request), compactions: make(map[furl.Seq]*compaction),
		pieces:         make([]rendered, rec.Log.Len()+1),
		recall:         sync.OnceValue(func() *recall.Index { return indexOf(rec.Log) }),
		counter:        o.counter(rec),
		sentAsRecorded: true,
	}
}

// indexOf indexes the text of all messages of a log.
func indexOf(log *furl.Log) *recall.Index {
	x := new(recall.Index)
	for _, r := range log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			for i := range m.Blocks {
				x.Add(furl.Pos{Msg: r.Seq, Block: i}, slices.Collect(m.Blocks[i].Texts())...)
			}
		}
	}
	return x
}

// walker applies the records of a recording one by one.
type walker struct {
	s       *session
	rec     *transcript.Session
	o       *Options
	state   *furl.State
	epoch   furl.Seq
	track   fidelity.Tracker
	tracked []furl.Seq // the messages in track, by record
	seen    fidelity.Seen
	meter   *token.Meter
	model   string // of meter
	last    *request
	changed bool // the prompt changed other than by growing
	// preamble is the size of the recorded instructions and tools.
	preamble token.Part
	// summaries counts the recording's own summaries and their tokens.
	summaries, summaryTokens int
}

func (w *walker) record(r furl.Record) error {
	switch b := r.Body.(type) {
	case *furl.Message:
		b.Measure(w.s.counter)
		w.trackMessage(r.Seq, b)
		w.size(b)
		if err := w.s.asRecorded(r.Seq, b); err != nil {
			return err
		}
	case *furl.Reduction:
		w.reduction(r, b)
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

// asSent returns a record as a run appends it. A request to a model that binds
// thinking gets the values that it was bound to.
func (w *walker) asSent(r furl.Record) furl.Record {
	if q := w.s.byExchange[r.Seq]; q != nil {
		ex := *q.ex
		ex.View, ex.Thinking = q.prefix, q.thinking
		r.Body = &ex
	}
	return r
}

// takenOver handles a reduction of another branch that a takeover applies.
func (w *walker) takenOver(seq furl.Seq, red *furl.Reduction) {
	w.changed = true
	for _, it := range red.Items {
		if _, ok := it.Show.(furl.Mark); ok {
			w.epoch = seq
		}
	}
}

// reduction handles a recorded reduction.
func (w *walker) reduction(r furl.Record, red *furl.Reduction) {
	w.changed = true
	if ofFurl(r) {
		w.s.sentAsRecorded = false
	}
	w.compaction(r, red)
	for _, it := range red.Items {
		if mark, ok := it.Show.(furl.Mark); ok {
			if !ofFurl(r) {
				w.epoch = r.Seq
			}
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

// rewind continues from an earlier record.
func (w *walker) rewind(to furl.Seq) error {
	state := new(furl.State)
	for _, r := range w.s.log.Path(to) {
		if err := state.Apply(w.asSent(r)); err != nil {
			return err
		}
	}
	w.state, w.changed, w.epoch = state, true, 0
	w.retrack()
	for red := range state.Reductions() {
		if ofFurl(w.s.log.At(red.Seq)) {
			continue
		}
		for _, it := range red.Items {
			if _, ok := it.Show.(furl.Mark); ok {
				w.epoch = red.Seq
			}
		}
	}
	return nil
}

// trackMessage adds a message of the path to the tracker.
func (w *walker) trackMessage(seq furl.Seq, m *furl.Message) {
	w.track.Add(m)
	w.tracked = append(w.tracked, seq)
}

// retrack moves the tracker to the path of the state: back to the last message
// that the two paths share, then forward. The new path can be another branch,
// longer or shorter than the old one.
func (w *walker) retrack() {
	shared := 0
	for shared < min(len(w.tracked), w.state.Len()) {
		if seq, _ := w.state.Message(shared); seq != w.tracked[shared] {
			break
		}
		shared++
	}
	w.track.Truncate(shared)
	w.tracked = w.tracked[:shared]
	for i := shared; i < w.state.Len(); i++ {
		w.trackMessage(w.state.Message(i))
	}
}

// correctOutput sets the estimated output of the last request to the meter's value, after its
// reply was added. Some recordings have the count of an unfinished reply.
func (w *walker) correctOutput() {
	if w.last != nil && w.last.ex.Usage.Prompt() > 0 {
		w.last.estimated = w.meter.Reply()
	}
}

// preambleOf counts the recorded instructions and tools.
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

// report estimates the prompt of a request, then adds the size that the provider
// reported.
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
	q.fit = w.meter.Calibration()
	w.meter.Report(q.ex.Usage, q.ex.Passes)
	q.shown = token.PartOfView(v)
}

func newMeter(m *furl.Model) *token.Meter {
	meter := token.NewMeter(m)
	return &meter
}

// request handles a recorded request, and finds what its reply reuses.
func (w *walker) request(r furl.Record, ex *furl.Exchange) {
	q := &request{seq: r.Seq, at: r.At, ex: ex, output: ex.Usage.Output, estimated: ex.Usage.Output, epoch: w.epoch, again: w.rec.Repeated[r.Seq]}
	q.model, q.known = w.o.model(ex.Model, w.rec)
	w.bill(q, r.At)
	reply := replyOf(w.s.log, r.Seq)
	for _, m := range reply {
		m.Measure(w.s.counter)
		q.said = q.said.Plus(token.PartOf(m.Blocks))
	}
	w.correctOutput()
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

// bill notes what the provider billed for a request beside its prompt and reply, and
// applies the terms of the request to the prices of its model.
func (w *walker) bill(q *request, at time.Time) {
	ex := q.ex
	billed := price.Request{Model: &q.model, Usage: ex.Usage, Passes: ex.Passes, Terms: ex.Terms, At: at, Models: func(name string) furl.Model {
		if name == ex.Model {
			return q.model
		}
		m, _ := w.o.Catalog.Lookup(name)
		return m
	}}
	for i, p := range billed.All() {
		if len(ex.Passes) > 0 && i != ex.Passes.Last() {
			q.passes.add(splitOf(&q.model, p.Prices, p.Usage))
		}
	}
	if cost, priced := billed.Cost(); priced {
		q.passes.Output += cost.Tools
	}
	q.model = *price.Under(&q.model, &ex.Terms)
}

// replyOf returns the messages of the reply to a request.
func replyOf(log *furl.Log, exchange furl.Seq) []*furl.Message {
	var reply []*furl.Message
	for seq := exchange + 1; int(seq) <= log.Len(); seq++ {
		m, ok := log.At(seq).Body.(*furl.Message)
		if !ok || m.Role != furl.RoleAssistant {
			break
		}
		reply = append(reply, m)
	}
	return reply
}

func (w *walker) finish() {
	s := w.s
	w.correctOutput()
	if w.meter == nil {
		m, _ := w.o.model(w.rec.Model, w.rec)
		w.meter = newMeter(&m)
	}
	s.sizes = w.meter.Calibration()
	for i, q := range s.requests {
		q.fixed, q.fitFixed = s.sizes.Estimate(w.preamble), q.fit.Estimate(w.preamble)
		if reported := q.ex.Passes.First(q.ex.Usage).Prompt(); reported > 0 {
			q.fixed = max(0, reported-s.sizes.Added(q.shown))
			q.fitFixed = max(0, reported-q.fit.Added(q.shown))
		} else if said := s.sizes.Added(q.said); 10*q.output < 7*said { // no report, or the count of an unfinished reply
			q.output, q.estimated = said, said
		}
		if i == 0 || q.fixed < s.preamble {
			s.preamble = q.fixed
		}
	}
	s.setLifetimes(w.o)
	s.summary = defaultSummary
	if w.summaries > 0 {
		s.summary = w.summaryTokens / w.summaries
	}
}

// setLifetimes sets the lifetimes of the cache entries that the client requested: those
// of the options, else by what was written with each request. Entries of one hour come first in a prompt: if
// there are entries of both lifetimes, those of one hour are the instructions'.
func (s *session) setLifetimes(o *Options) {
	if o.CacheLifetime > 0 {
		for _, q := range s.requests {
			q.model = price.WithLifetime(q.model, o.CacheLifetime)
		}
		return
	}
	s.withoutCache()
	clients := make(map[string]*clientCache) // by the model
	for _, q := range s.requests {
		if clients[q.ex.Model] == nil {
			clients[q.ex.Model] = new(clientCache)
			for _, later := range s.requests { // what it requests before the first report
				if later.ex.Model == q.ex.Model && clients[q.ex.Model].report(later.ex.Usage) {
					break
				}
			}
		}
		c := clients[q.ex.Model]
		c.report(q.ex.Usage)
		q.long = c.long
		if c.hourly {
			q.model = price.WithLifetime(q.model, price.LongLifetime(&q.model))
		}
	}
}

// withoutCache notes that a client asks for no cache: the provider never reported any use of it,
// although the model has explicit breakpoints and a prompt was long enough.
func (s *session) withoutCache() {
	used, long := make(map[string]bool), make(map[string]bool) // by the model
	for _, q := range s.requests {
		u := q.ex.Usage
		used[q.ex.Model] = used[q.ex.Model] || u.CacheRead+u.CacheWrite+u.CacheWrite1h > 0
		long[q.ex.Model] = long[q.ex.Model] || u.Prompt() > q.model.Caching.MinPrefix
	}
	for _, q := range s.requests {
		if q.model.Caching.Explicit && long[q.ex.Model] && !used[q.ex.Model] {
			q.model.Caching = furl.Caching{}
		}
	}
}

// clientCache is the cache entries that a client requests.
type clientCache struct {
	long   bool // the entry of the instructions lives an hour
	hourly bool // all entries do
}

// report updates c by the reported usage of a request. It reports whether that says
// anything.
func (c *clientCache) report(u furl.Usage) bool {
	switch {
	case u.CacheWrite1h > 0:
		c.long, c.hourly = true, u.CacheWrite == 0
	case u.CacheWrite > 0:
		c.long, c.hourly = c.long && u.CacheRead > 0, false
	default:
		return false
	}
	return true
}
