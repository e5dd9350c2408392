package main

import (
	"context"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
)

// oracle is a policy that knows the future of the session that it plans. It keeps
// what later replies quote, lists the identifiers that they use, and hides
// everything else at the requests that its schedule names.
type oracle struct {
	variant
	futures  map[*furl.Message]*future // by the first message of the session
	pipeline *policy.Pipeline
	request  int
	future   *future
	segment  *segment
	edits    map[int]int // by request: from which unit of the segment on
}

// variant is a setting of the plan. Each recording is planned with all of variants,
// and the cheapest counts: which is best depends on how a provider caches and bills,
// and only the replay knows that exactly.
type variant struct {
	// overhead is the tokens that an edit is expected to add for its marker and list.
	overhead float64
	// early lets markers replace steps that are newer than the last words of the
	// user, although some models then drop the thinking before the marker.
	early bool
}

var variants = []variant{{60, true}, {60, false}, {200, true}, {200, false}}

func newOracle(futures map[*furl.Message]*future, v variant) *oracle {
	o := &oracle{futures: futures, variant: v, request: -1}
	o.pipeline = &policy.Pipeline{Label: o.Name(), Stages: []policy.Stage{o}}
	return o
}

// Name is "oracle".
func (*oracle) Name() string { return "oracle" }

// Plan plans the next recorded request.
func (o *oracle) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	o.request++
	if o.future == nil && s.Len() > 0 {
		_, first := s.Message(0)
		o.future = o.futures[first]
	}
	return o.pipeline.Plan(ctx, s, b)
}

// Reduce makes the edit of the schedule for this request.
func (o *oracle) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	f := o.future
	if f == nil || o.request >= len(f.requests) {
		return nil, policy.Nothing
	}
	if seg := f.requests[o.request].segment; seg != o.segment {
		o.segment = seg
		o.edits = make(map[int]int)
		for _, e := range o.problem(seg, v, &b).solve() {
			o.edits[e.request] = e.position
		}
	}
	if o.variant == variants[0] {
		f.addFloor(o.segment, o.request, &b)
	}
	at, ok := o.edits[o.request]
	if !ok {
		return nil, policy.Nothing
	}
	r := reducer{oracle: o, v: v, b: b, t: o.request, from: o.segment.units[at].index}
	return r.reduce()
}

// placeholderTokens is what a placeholder without identifiers takes.
const placeholderTokens = 10

// problem is the schedule to find for a segment that begins with a view.
func (o *oracle) problem(seg *segment, v *furl.View, b *furl.Budget) *problem {
	pr := &problem{from: seg.from, to: seg.to, overhead: o.overhead, marked: b.Model.Caching.Explicit}
	pr.read, pr.write = readWrite(b)
	hidden := hiddenIn(v)
	for i := range seg.units {
		u := &seg.units[i]
		p := position{first: u.first}
		if i > 0 {
			p.first = max(p.first, pr.positions[i-1].first)
		}
		for _, it := range o.future.items(u, b, o.early, hidden) {
			it.at = i
			pr.items = append(pr.items, it)
		}
		for _, pl := range u.blocks {
			n, ok := hidden[pl]
			if !ok {
				n = pl.msg.Blocks[pl.block].Tokens
			}
			p.tokens += float64(b.Of(n, 0))
		}
		p.tokens += float64(b.Of(0, u.items()))
		pr.positions = append(pr.positions, p)
	}
	for t := seg.from; t < seg.to; t++ {
		pr.lost = append(pr.lost, o.future.lostFrom(seg, t, b))
	}
	return pr
}

// readWrite returns the prices of a cached token and of one that is written, in
// multiples of that of uncached input.
func readWrite(b *furl.Budget) (read, write float64) {
	p := price.Complete(price.For(&b.Model, b.Size, b.Now))
	if !price.Known(p) || b.Model.Caching.Lifetime == 0 {
		return 1, 1
	}
	return p.CacheRead / p.Input, p.CacheWrite / p.Input
}

// hiddenIn returns the blocks that a view shows as placeholders or not at all,
// with the tokens that remain, for the units up to the view's end.
func hiddenIn(v *furl.View) map[place]int {
	hidden := make(map[place]int)
	shown := make(map[furl.Pos]*furl.ShownBlock)
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if sb := &v.Messages[i].Blocks[j]; v.Messages[i].Index >= 0 {
				shown[sb.Pos] = sb
			}
		}
	}
	for i := range v.State.Len() {
		seq, m := v.State.Message(i)
		for j := range m.Blocks {
			switch sb := shown[furl.Pos{Msg: seq, Block: j}]; {
			case sb == nil:
				hidden[place{m, j}] = 0
			case sb.By != 0:
				hidden[place{m, j}] = sb.Tokens
			}
		}
	}
	return hidden
}

// items returns what can be hidden of a unit: results and thinking, and later the
// whole step.
func (f *future) items(u *unit, b *furl.Budget, early bool, hidden map[place]int) []item {
	if u.kind != furl.UnitStep {
		return nil
	}
	var list []item
	rest := 0
	for _, p := range u.blocks {
		blk := &p.msg.Blocks[p.block]
		if n, ok := hidden[p]; ok {
			rest += n
			continue
		}
		freed := 0
		from := f.hideFrom(u, p)
		switch {
		case blk.IsResult():
			freed = blk.Tokens - placeholderTokens
		case blk.Kind == furl.KindThinking && mayDropThinking(b):
			freed, from = blk.Tokens, max(from, u.spoken)
		}
		if freed < placeholderTokens || from >= never {
			freed = 0
		} else {
			list = append(list, item{from: from, freed: float64(b.Of(freed, 0))})
		}
		rest += blk.Tokens - freed
	}
	if from := f.foldFrom(u, b, early); from < never && rest > 0 {
		list = append(list, item{from: from, freed: float64(b.Of(rest, u.items()))})
	}
	return list
}

func mayDropThinking(b *furl.Budget) bool {
	t := b.Model.Thinking
	return t.Removable && !t.LastOnly && !t.Binds
}

// reducer makes one reduction: everything that may be hidden at request t, from a
// message of the path on.
type reducer struct {
	*oracle
	v    *furl.View
	b    furl.Budget
	t    int
	from int

	gone  map[place]*batch // hidden by this reduction, and where its identifiers go
	alone map[place]*furl.ShownBlock
	order []place // of alone
	runs  []*batch
}

// batch is a run of steps between words of the user.
type batch struct {
	units   []*furl.Unit // to be replaced by a marker, and markers
	carrier *furl.Unit   // shows the list of identifiers
	bearer  int          // the carrier's result that shows it
	names   []string
}

func (r *reducer) reduce() (*furl.Reduction, error) {
	r.pick()
	r.list()
	red := &furl.Reduction{Stage: r.Name(), Reason: "knows the future"}
	for _, ru := range r.runs {
		r.fold(red, ru)
	}
	for _, p := range r.order {
		r.hide(red, r.alone[p], r.gone[p].names)
	}
	if len(red.Items) == 0 {
		return nil, policy.Nothing
	}
	return red, nil
}

// pick finds the steps and the results to hide.
func (r *reducer) pick() {
	r.gone, r.alone = make(map[place]*batch), make(map[place]*furl.ShownBlock)
	units := make(map[*furl.Message]*unit)
	for i := range r.segment.units {
		u := &r.segment.units[i]
		if u.kind == furl.UnitStep {
			for _, m := range u.messages {
				units[m] = u
			}
		}
	}
	var ru *batch
	for i := range r.v.Units {
		vu := &r.v.Units[i]
		switch {
		case vu.Kind == furl.UnitUser || vu.Kind == furl.UnitSystem:
			ru = nil
			continue
		case r.indexOf(vu) < r.from || vu.Protected || vu.Hold >= furl.Keep:
			continue
		}
		if ru == nil {
			ru = new(batch)
			r.runs = append(r.runs, ru)
		}
		if vu.Kind == furl.UnitMark {
			if red, ok := r.v.State.Reduction(vu.By); ok && red.Stage == r.Name() {
				ru.units = append(ru.units, vu)
			}
			continue
		}
		u := units[r.v.Messages[vu.First].Msg]
		if u == nil {
			continue
		}
		if r.future.foldFrom(u, &r.b, r.early) <= r.t {
			ru.units = append(ru.units, vu)
			for _, p := range u.blocks {
				r.gone[p] = ru
			}
			continue
		}
		for j := range vu.Blocks {
			r.pickBlock(u, &vu.Blocks[j])
		}
	}
	for _, ru := range r.runs {
		r.settle(ru)
	}
}

// pickBlock finds a block to hide by itself.
func (r *reducer) pickBlock(u *unit, sb *furl.ShownBlock) {
	at, ok := r.v.State.Find(sb.Pos.Msg)
	if !ok || sb.By != 0 {
		return
	}
	_, m := r.v.State.Message(at)
	p := place{m, sb.Pos.Block}
	from := r.future.hideFrom(u, p)
	switch {
	case sb.Block.IsResult() && sb.Tokens >= 2*placeholderTokens:
	case sb.Block.Kind == furl.KindThinking && mayDropThinking(&r.b):
		from = max(from, u.spoken)
	default:
		return
	}
	if from <= r.t {
		r.gone[p], r.alone[p] = new(batch), sb
		r.order = append(r.order, p)
	}
}

// settle decides whether a run is replaced by a marker.
func (r *reducer) settle(ru *batch) {
	tokens, steps := 0, 0
	for _, vu := range ru.units {
		tokens += vu.Tokens
		if vu.Kind == furl.UnitStep {
			steps++
		}
	}
	if steps > 0 && tokens > 2*markerTokens {
		return
	}
	for p, of := range r.gone {
		if of == ru {
			delete(r.gone, p)
		}
	}
	ru.units = nil
}

// markerTokens is what a marker takes.
const markerTokens = 15

// indexOf returns the place of a unit's first message on the path.
func (r *reducer) indexOf(u *furl.Unit) int {
	if sh := &r.v.Messages[u.First]; sh.Index >= 0 {
		return sh.Index
	}
	at, _ := r.v.State.Find(r.v.Spans(*u)[0].First.Msg)
	return at
}

// list assigns the identifiers that are needed later, and would not be visible, to
// the runs and placeholders that hide them.
func (r *reducer) list() {
	visible := make(map[string]bool) // identifiers in placeholders that stay
	shown := make(map[place]bool)    // blocks as recorded that stay
	old := make(map[string]*batch)   // identifiers in placeholders that go
	for i := range r.v.Units {
		vu := &r.v.Units[i]
		var of *batch
		for _, ru := range r.runs {
			for _, other := range ru.units {
				if other == vu {
					of = ru
				}
			}
		}
		for j := range vu.Blocks {
			sb := &vu.Blocks[j]
			if vu.Kind != furl.UnitMark && sb.By == 0 {
				at, _ := r.v.State.Find(sb.Pos.Msg)
				_, m := r.v.State.Message(at)
				p := place{m, sb.Pos.Block}
				if _, goes := r.gone[p]; !goes && of == nil {
					shown[p] = true
				}
				continue
			}
			for text := range sb.Texts() {
				for n := range lexer.Names(text) {
					if of == nil {
						visible[n] = true
					} else {
						old[n] = of
					}
				}
			}
		}
	}
	for t := r.t; t < r.segment.to; t++ {
	names:
		for _, n := range r.future.requests[t].names {
			if visible[n.text] {
				continue
			}
			to := old[n.text]
			for _, p := range n.holders {
				if shown[p] || r.future.messages[p.msg].first > r.t {
					continue names
				}
				if ru := r.gone[p]; ru != nil {
					to = ru
				}
			}
			if to != nil {
				to.names = append(to.names, n.text)
				visible[n.text] = true
			}
		}
	}
}

// fold replaces a run of steps by a marker. If identifiers are needed, the smallest
// of the steps stays, and its result lists them.
func (r *reducer) fold(red *furl.Reduction, ru *batch) {
	if len(ru.units) == 0 {
		return
	}
	if len(ru.names) > 0 {
		ru.pickCarrier()
	}
	var hidden []furl.Unit
	for _, vu := range ru.units {
		if vu != ru.carrier {
			hidden = append(hidden, *vu)
		}
	}
	if len(hidden) > 0 {
		m := furl.TextMessage(furl.RoleUser, "[hidden steps]")
		if r.b.Counter != nil {
			m.Measure(r.b.Counter)
		}
		red.Items = append(red.Items, furl.Item{Spans: r.v.Spans(hidden...), Show: furl.Mark{Messages: []*furl.Message{m}}})
	}
	if ru.carrier == nil {
		return
	}
	for j := range ru.carrier.Blocks {
		switch sb := &ru.carrier.Blocks[j]; {
		case j == ru.bearer:
			r.show(red, sb, ru.names)
		case sb.Block.IsResult():
			r.hide(red, sb, nil)
		}
	}
}

func (ru *batch) pickCarrier() {
	least := 0
	for _, vu := range ru.units {
		if vu.Kind != furl.UnitStep {
			continue
		}
		bearer, size := -1, 0
		for j := range vu.Blocks {
			if sb := &vu.Blocks[j]; !sb.Block.IsResult() {
				size += sb.Tokens
			} else if bearer < 0 {
				bearer = j
			}
		}
		if bearer >= 0 && (ru.carrier == nil || size < least) {
			ru.carrier, ru.bearer, least = vu, bearer, size
		}
	}
}

// hide shows a placeholder for one block, if that is smaller.
func (r *reducer) hide(red *furl.Reduction, sb *furl.ShownBlock, names []string) {
	if sb.Block.Kind == furl.KindThinking {
		red.Items = append(red.Items, item1(sb, furl.Gone{}))
		return
	}
	if in := furl.InPlace(sb.Block, placeholder(names), r.b.Counter); in.Tokens < sb.Tokens {
		red.Items = append(red.Items, item1(sb, in))
	}
}

// show shows a list for one block.
func (r *reducer) show(red *furl.Reduction, sb *furl.ShownBlock, names []string) {
	red.Items = append(red.Items, item1(sb, furl.InPlace(sb.Block, placeholder(names), r.b.Counter)))
}

func item1(sb *furl.ShownBlock, show furl.Show) furl.Item {
	return furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: show}
}

func placeholder(names []string) string {
	if len(names) == 0 {
		return "[hidden]"
	}
	return "[hidden; identifiers in it: " + strings.Join(names, " ") + "]"
}
