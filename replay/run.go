package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/token"
)

// run is the replay of one session under one policy and window.
type run struct {
	s      *session
	o      *Options
	policy furl.Policy
	window int // 0: the model's

	log *furl.Log
	// now maps records of the recording to records of log. after maps them to
	// the record of log to continue from when the recording rewinds to them.
	now, after []furl.Seq
	old        []furl.Seq // the reverse of now, by record of log; 0: none
	cache      promptCache
	edited     map[string]rendered // messages not shown as recorded
	seen       fidelity.Seen
	last       time.Time // of the last request
	model      string    // of the last request, "" before the first
	own        bought    // summaries for the current request
	agent      bought    // compactions by the agent before it
	summarized bool      // the policy requested a summary
	current    *request
	keepAlive  keepAlive
	hourCache  protocol.HourCache // the candidate's
	// hadHourCache says that the last request asked for entries of one hour because of it.
	hadHourCache bool
	fixed        fixedCost

	// The current request. The slices are reused.
	list []rendered
	sent []piece
	msgs []furl.Message
	// learns says that this run compares the simulation with what was billed.
	learns bool
	// until is the number of the request to stop before, 0 for none. stopped
	// is filled in there.
	until   int
	stopped *Inspection

	out   Result
	each  []outcome
	trail Series
}

// outcome is the cost of one request, for comparing policies request by request.
type outcome struct {
	bought          // the prompt, the policy's own calls and the agent's compactions
	penalty  bought // of the reply's blind edits
	priced   bool
	sendable bool
}

// bought is a part of the cost, in dollars and in tokens. The tokens count if no
// price is known.
type bought struct {
	dollars float64
	tokens  int
}

// play replays the whole session.
func (r *run) play(ctx context.Context) error {
	s := r.s
	r.log = furl.NewLog()
	r.now = make([]furl.Seq, s.log.Len()+1)
	r.after = make([]furl.Seq, s.log.Len()+1)
	r.old = make([]furl.Seq, 1, 1+2*s.log.Len())
	r.edited = make(map[string]rendered)
	r.trail.Session = s.id
	r.cache.noMark, r.cache.cache.RenewOne = r.o.noMark, r.o.renewOne
	for seq := furl.Seq(1); int(seq) <= s.log.Len(); seq++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.record(ctx, s.log.At(seq)); err != nil {
			return fmt.Errorf("session %s, record %d, policy %s: %w", s.id, seq, r.policy.Name(), err)
		}
	}
	r.pingAfterLast()
	losses := lossesOf(s.asked)
	r.out.risk.interval(&losses)
	r.out.Series = []Series{r.trail}
	return nil
}

// release frees everything except the results of the run.
func (r *run) release() {
	*r = run{out: r.out, each: r.each, summarized: r.summarized, fixed: r.fixed}
}

// ofFurl reports whether a record is a reduction or a restoration of furl, or of a person
// who uses it. A replay does not repeat these: the policy decides instead.
func ofFurl(rec furl.Record) bool {
	switch rec.Body.(type) {
	case *furl.Reduction, *furl.Restoration:
		return rec.By == furl.Furl || rec.By == furl.Person
	}
	return false
}

func (r *run) record(ctx context.Context, rec furl.Record) error {
	if ofFurl(rec) {
		r.after[rec.Seq] = r.log.Head()
		return nil
	}
	var err error
	switch b := rec.Body.(type) {
	case *furl.Message:
		err = r.append(rec, rec.By, b)
	case *furl.Reduction:
		if c := r.s.compactions[rec.Seq]; c != nil {
			if err := r.compact(c); err != nil {
				return err
			}
		}
		err = r.append(rec, rec.By, r.translate(b))
	case *furl.Restoration:
		t := *b
		t.Of, t.Spans = r.now[b.Of], r.spans(b.Spans)
		err = r.append(rec, rec.By, &t)
	case *furl.Takeover:
		err = r.takeOver(rec, b)
	case *furl.Head:
		_, err = r.log.Rewind(r.after[rec.Parent], rec.At, rec.By)
		r.grow(0)
	case *furl.Exchange:
		err = r.request(ctx, rec, r.s.byExchange[rec.Seq])
	}
	return err
}

// append adds a record of the recording to the log of the run.
func (r *run) append(rec furl.Record, by furl.Actor, body furl.Body) error {
	got, err := r.log.Append(r.log.Head(), rec.At, by, body)
	if err != nil {
		return err
	}
	r.now[rec.Seq], r.after[rec.Seq] = got.Seq, got.Seq
	r.grow(rec.Seq)
	return nil
}

// grow adds the origin of the newest record of the log: a record of the recording,
// or 0.
func (r *run) grow(old furl.Seq) { r.old = append(r.old, old) }

// translate returns a recorded reduction with its spans in the log of the run.
func (r *run) translate(b *furl.Reduction) *furl.Reduction {
	t := *b
	t.Items = make([]furl.Item, len(b.Items))
	for i, it := range b.Items {
		t.Items[i] = furl.Item{Spans: r.spans(it.Spans), Show: it.Show}
	}
	return &t
}

// takeOver repeats a recorded takeover: the reductions of an abandoned branch
// apply on the current branch too.
func (r *run) takeOver(rec furl.Record, b *furl.Takeover) error {
	moved := make([]furl.Moved, len(b.Moved))
	for i, m := range b.Moved {
		moved[i] = furl.Moved{Old: r.now[m.Old], New: r.now[m.New], Messages: m.Messages}
	}
	t, err := r.log.Takeover(r.after[b.Branch], moved)
	if err != nil {
		return err
	}
	if t == nil {
		r.after[rec.Seq] = r.log.Head()
		return nil
	}
	return r.append(rec, rec.By, t)
}

func (r *run) spans(spans []furl.Span) []furl.Span {
	out := make([]furl.Span, len(spans))
	for i, sp := range spans {
		out[i] = furl.Span{
			First: furl.Pos{Msg: r.now[sp.First.Msg], Block: sp.First.Block},
			Last:  furl.Pos{Msg: r.now[sp.Last.Msg], Block: sp.Last.Block},
		}
	}
	return out
}

// request plans, sends and measures one request. One that is counted in another session only
// changes what the policy and the cache know.
func (r *run) request(ctx context.Context, rec furl.Record, q *request) error {
	if !q.again {
		return r.send(ctx, rec, q)
	}
	out, fixed, points := r.out, r.fixed, len(r.trail.Points)
	err := r.send(ctx, rec, q)
	r.out, r.fixed, r.trail.Points = out, fixed, r.trail.Points[:points]
	if n := len(r.each); n > 0 {
		r.each[n-1] = outcome{}
	}
	r.keepAlive.of = nil // the session continues elsewhere
	return err
}

// send plans, sends and measures one request.
func (r *run) send(ctx context.Context, rec furl.Record, q *request) error {
	model := q.model
	r.ping(q.at)
	b := r.budget(q)
	r.current = q
	if repair := policy.RepairOf(r.policy, r.log.State(), b); repair != nil {
		if _, err := r.log.Append(r.log.Head(), q.at, furl.Furl, repair.Restoration); err != nil {
			return err
		}
		r.grow(0)
		b = r.budget(q)
	}
	plan, err := r.plan(ctx, q, b)
	if err != nil {
		return err
	}
	view := plan.View
	if size := q.fixed + r.s.sizes.Added(token.PartOfView(view)); b.Window > 0 && size > b.Window && !plan.Impossible {
		// Where sizes were underestimated, the provider refuses the request and reports the size,
		// and the gateway plans again with it.
		b = r.budgetBy(q, r.s.sizes, q.fixed)
		if plan, err = r.planAgain(ctx, q, b, plan); err != nil {
			return err
		}
		view = plan.View
	}
	r.cache.long = r.longPreamble(q, &b, view)
	if err := r.render(view); err != nil {
		return err
	}
	if r.out.Requests+1 == r.until {
		r.stopped.View, r.stopped.Plan, r.stopped.Budget = view, plan, b
		return errStop
	}
	if r.o.sent != nil {
		r.o.sent(r, plan)
	}
	r.validate(q)
	r.charge(q, b, plan, view)
	r.pause(q)
	r.fidelity(q, view)
	r.after[rec.Parent] = r.log.Head()
	ex := *q.ex
	ex.View, ex.Thinking, ex.Plan = furl.Digest{}, furl.Pos{}, plan.Steps
	if model.Thinking.Binds {
		ex.View, ex.Thinking = view.Prefix(), view.LastThinking
	}
	r.last, r.model = q.at, q.ex.Model
	return r.append(rec, furl.Furl, &ex)
}

// plan plans a request and appends the reductions. The plan's view is that of the log: right
// after a rewind, the one that a policy returns refers to its reductions by numbers that
// other records have.
func (r *run) plan(ctx context.Context, q *request, b furl.Budget) (*furl.Plan, error) {
	rewound := int(r.log.Head()) != r.log.Len()
	plan, err := r.policy.Plan(ctx, r.log.State(), b)
	if err != nil {
		return nil, err
	}
	for _, red := range plan.Reductions {
		if _, err := r.log.Append(r.log.Head(), q.at, furl.Furl, red); err != nil {
			return nil, err
		}
		r.grow(0)
	}
	if plan.View == nil || rewound {
		plan.View = r.log.State().View(q.model)
	}
	return plan, nil
}

// planAgain is plan after one whose reductions were appended and were not enough.
func (r *run) planAgain(ctx context.Context, q *request, b furl.Budget, first *furl.Plan) (*furl.Plan, error) {
	plan, err := r.plan(ctx, q, b)
	if err != nil {
		return nil, err
	}
	plan.Reductions = slices.Concat(first.Reductions, plan.Reductions)
	plan.Steps = slices.Concat(first.Steps, plan.Steps)
	plan.Backstops += first.Backstops
	return plan, nil
}

// budget is the input of the policy, with sizes as they were known before the request.
func (r *run) budget(q *request) furl.Budget { return r.budgetBy(q, q.fit, q.fitFixed) }

// budgetBy is budget with sizes by a fit, of which fixed tokens are not recorded.
func (r *run) budgetBy(q *request, sizes token.Calibration, fixed int) furl.Budget {
	b := policy.NewBudget(q.model, r.window)
	b.Counter, b.Fixed, b.Recall = r.s.counter, fixed, r.o.Recall || policy.NeedsRecall(r.policy, &b)
	b.Scale, b.PerItem = sizes.Scale(), sizes.PerItem()
	b.Now, b.LastUse, b.Cold = q.at, r.cacheUsed(), r.model != "" && r.model != q.ex.Model
	b.Size = fixed + sizes.Added(token.PartOfView(r.log.State().View(q.model)))
	return b
}

// render encodes the view as the request's messages. Each message is encoded once
// as recorded, and once for each way in which a reduction edits it.
func (r *run) render(v *furl.View) error {
	r.list = r.list[:0]
	for i := range v.Messages {
		m, err := r.message(&v.Messages[i])
		if err != nil {
			return err
		}
		r.list = append(r.list, m)
	}
	return nil
}

func (r *run) message(sh *furl.Shown) (rendered, error) {
	if sh.Index >= 0 && sh.AsRecorded() {
		return r.s.pieces[r.old[sh.Seq]], nil
	}
	key := editKey(sh)
	if m, ok := r.edited[key]; ok {
		return m, nil
	}
	m, err := r.s.encode(sh)
	r.edited[key] = m
	return m, err
}

// editKey identifies an edited message by its shown text. The numbers of the
// reductions would not do: the views that a summarizer gets are never recorded.
func editKey(sh *furl.Shown) string {
	key := make([]byte, 0, 256)
	key = binary.AppendUvarint(key, uint64(sh.Seq))
	key = append(key, sh.Msg.Role...)
	for i := range sh.Blocks {
		sb := &sh.Blocks[i]
		key = binary.AppendUvarint(key, uint64(sb.Pos.Block))
		if sb.By != 0 || sh.Index < 0 {
			words := sb.Words()
			key = append(binary.AppendUvarint(key, uint64(len(words))+1), words...)
		} else {
			key = append(key, 0)
		}
		if len(sb.Block.Media) > 0 && sh.Index < 0 {
			key = fmt.Appendf(key, "%p", sb.Block)
		}
	}
	return string(key)
}

// validate checks the request against the provider's rules.
func (r *run) validate(q *request) {
	r.msgs = r.msgs[:0]
	for i := range r.list {
		r.msgs = append(r.msgs, r.list[i].messages...)
	}
	req := protocol.Request{Format: r.s.codec.Format(), Model: q.ex.Model, Messages: r.msgs}
	if err := r.s.codec.Validate(&req, q.model); err != nil {
		r.out.InvalidRequests++
		if r.out.FirstRefusal == "" {
			r.out.FirstRefusal = err.Error()
		}
	}
}

// charge adds the cost of the request, and whether it fits the window.
func (r *run) charge(q *request, b furl.Budget, plan *furl.Plan, v *furl.View) {
	s := r.cache.request(q.model.Caching, q.ex.Model, r.pieces(v, q), q.at)
	size := s.prompt()
	out := &r.out
	out.Requests++
	out.withoutFurl = out.withoutFurl || !r.s.sentAsRecorded
	if q.ex.Usage.Prompt() > 0 && r.o.fits() {
		out.reported++
	}
	out.inWindow(b.Window, out.windowsDiffer)
	out.Reductions += len(plan.Reductions)
	out.Backstops += plan.Backstops
	over := tooLarge(size, v, b)
	switch {
	case over && plan.Impossible:
		out.Impossible++
	case over:
		out.Overflows++
	}
	if s.Broke {
		out.CacheBreaks++
	}
	prices := price.For(&q.model, size, q.at)
	cost := r.input(q, s)
	o := outcome{bought: bought{cost.Input() + r.own.dollars + r.agent.dollars, size + r.own.tokens + r.agent.tokens}, priced: price.Known(prices), sendable: !over}
	r.each = append(r.each, o)
	r.fixed.add(q, s, r.s.toolTokens)
	out.Split.Own += r.own.dollars // also if the request does not fit
	out.Split.Compactions += r.agent.dollars
	r.own, r.agent = bought{}, bought{}
	cost.Output = float64(q.output) * prices.Output / 1e6
	cost.add(q.passes)
	out.all.add(bought{o.dollars + cost.Output + q.passes.Input(), o.tokens})
	if o.sendable {
		out.TokensSent += size
		out.Peak = max(out.Peak, size)
		out.Split.add(cost)
	} else {
		out.OverflowCost += cost.Input() + cost.Output
	}
	r.trail.Window = max(r.trail.Window, b.Window)
	r.addPoint(q, plan, q.fitted(s, r.cache.long != q.long), over)
}

// input returns what the prompt of a request costs. The first run of policy none compares it
// with what was billed.
func (r *run) input(q *request, s split) CostSplit {
	if r.learns && r.s.sentAsRecorded && r.o.fits() {
		billed, fitted := q.learn(s)
		if !q.again {
			r.s.billed += billed
			r.s.fitted += fitted
		}
	}
	ownLifetime := r.cache.long != q.long
	cost := q.input(s, ownLifetime)
	billed := q.hits.reported && !ownLifetime && s == q.hits.simulated
	if billed && !r.learns {
		return cost
	}
	k := risk{requests: 1, cost: cost.Input(), plain: bill(&q.model, q.classes(s, s.Read, ownLifetime), q.at).Input()}
	if s.Shared > 0 {
		lost := q.classes(s, min(s.Read, q.fixed/2), ownLifetime)
		k.each = max(0, bill(&q.model, lost, q.at).Input()-k.plain)
	}
	switch {
	case !billed:
		r.out.risk.add(k)
	case s.Shared > 0:
		r.s.asked = append(r.s.asked, asked{billed: k.cost, plain: k.plain, each: k.each, lost: q.hits.lost()})
	}
	return cost
}

// tooLarge reports whether the provider would refuse a request for its size. The
// room that policies reserve for the reply does not count.
func tooLarge(size int, v *furl.View, b furl.Budget) bool {
	return b.Window > 0 && size > b.Window ||
		b.MaxBytes > 0 && v.Bytes > b.MaxBytes ||
		b.MaxImages > 0 && v.Images > b.MaxImages ||
		b.MaxMessages > 0 && len(v.Messages) > b.MaxMessages
}

// pieces returns the request as the cache sees it: the instructions, other parts
// that were sent but not recorded, and the messages.
func (r *run) pieces(v *furl.View, q *request) []piece {
	preamble := min(q.fixed, r.s.preamble)
	r.sent = append(r.sent[:0], piece{Tokens: preamble, Positions: 1})
	r.sent = append(r.sent, piece{ID: uint64(q.epoch), Tokens: q.fixed - preamble, Positions: 1})
	from := v.ThinkingFrom
	var all token.Part
	size := 0
	for i := range r.list {
		m := &r.list[i]
		p, part := piece{ID: m.id, Positions: m.positions}, m.size
		if i < from && part.Thinking > 0 {
			// The provider ignores this thinking, so the cached prefix differs
			// from the one that included it.
			p.ID++
			part.Thinking = 0
		}
		// Differences of sums, so that rounding errors do not add up.
		all = all.Plus(part)
		p.Tokens = r.s.sizes.Added(all) - size
		size += p.Tokens
		r.sent = append(r.sent, p)
	}
	return r.sent
}

// fidelity counts how many of the identifiers and lines that the reply reuses are
// still in the view.
func (r *run) fidelity(q *request, v *furl.View) {
	r.seen.Look(q.reply, v)
	c := r.seen.Count()
	out := &r.out
	out.References += c.References
	out.ReferencesKept += c.ReferencesKept
	out.OwnReferences += c.OwnReferences
	out.OwnReferencesKept += c.OwnReferencesKept
	out.QuotedLines += c.Lines
	out.QuotedLinesKept += c.LinesKept
	out.Refetches += c.Refetches
	out.Edits += c.Edits
	out.BlindEdits += c.BlindEdits
	if q.reply.Unmeasured {
		out.EditsNotMeasured++
	}
	if c.BlindEdits > 0 {
		r.penalise(q)
	}
	if c.ReferencesKept == c.References && c.OwnReferencesKept == c.OwnReferences {
		return
	}
	for i, ref := range q.reply.Refs {
		if r.seen.Ref(i) || !r.recallable(q, ref) {
			continue
		}
		if ref.FirstHand {
			out.ReferencesRecallable++
		} else {
			out.OwnRecallable++
		}
	}
}

// penalise charges the newest outcome with reading again what blind edits replace.
func (r *run) penalise(q *request) {
	o := &r.each[len(r.each)-1]
	size := r.trail.Points[len(r.trail.Points)-1].Tokens
	prices := price.Complete(price.For(&q.model, size, q.at))
	for i := range q.reply.Edits {
		if line := r.seen.Blind(i); line != nil {
			text := r.holder(q, *line)
			o.penalty.add(bought{(float64(size)*prices.CacheRead + float64(text)*prices.CacheWrite) / 1e6, size + text})
		}
	}
	r.out.allPenalty.add(o.penalty)
}

// holder returns the size of the newest result that has a line, or of the newest other
// block that has it, in tokens.
func (r *run) holder(q *request, line fidelity.Line) int {
	tokens, inResult := 0, false
	state := r.log.State()
	for i, j := range q.reply.LineHolders(line) {
		_, m := state.Message(i)
		if b := &m.Blocks[j]; b.IsResult() || !inResult {
			tokens, inResult = r.s.sizes.Added(token.PartOf(m.Blocks[j:j+1])), b.IsResult()
		}
	}
	return tokens
}

// recallable reports whether a search of the hidden text finds a block with the
// reference in its first five results.
func (r *run) recallable(q *request, ref fidelity.Ref) bool {
	state := r.log.State()
	hidden := func(p furl.Pos) bool {
		return p.Msg < q.seq && r.now[p.Msg] != 0 && state.ShownBy(furl.Pos{Msg: r.now[p.Msg], Block: p.Block}) != 0
	}
	for _, hit := range r.s.recall().Search(ref.Name, 5, hidden) {
		i, ok := state.Find(r.now[hit.Pos.Msg])
		if ok && q.reply.Holds(ref, i, hit.Pos.Block) {
			return true
		}
	}
	return false
}

// addPoint adds the request to the series of the session.
func (r *run) addPoint(q *request, plan *furl.Plan, s split, refused bool) {
	p := Point{At: q.at, Tokens: s.prompt(), Read: s.Read, Refused: refused}
	for _, red := range plan.Reductions {
		p.Reduced = append(p.Reduced, red.Stage)
		p.Freed += red.Before - red.After
	}
	r.trail.Points = append(r.trail.Points, p)
}
