package main

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/replay"
)

// part is a part of the cost of the requests.
type part int

// The parts. The first ones are what the prompts have, at the price of cache reads.
// The next three are what writing to the cache costs in addition.
const (
	partFixed        part = iota // instructions, tools, and what is not recorded
	partWords                    // of the user, and replies of the assistant
	partCalls                    // steps without their results and thinking
	partThinking                 // as far as it is billed
	partNew                      // results of the newest step
	partNeeded                   // results that a later reply quotes
	partUnneeded                 // other results
	partPlaceholders             // and lists
	partMarkers
	partFirst       // writing what is new
	partPauses      // writing again what the cache has lost without a reduction
	partRewrite     // writing again because of a reduction
	partCompactions // by the agent
	numParts
)

var partNames = [numParts]string{
	"instructions, tools, not recorded", "words of the user and replies", "calls", "thinking",
	"results of the newest step", "results that are quoted later", "other results", "placeholders and lists", "markers",
	"first writing", "writing after pauses", "rewriting", "the agent's compactions",
}

// prompt is the size of what one request has, by part, in the provider's tokens.
type prompt [partFirst]float64

// watch is a policy that records what the prompts of another one have.
type watch struct {
	furl.Policy
	futures map[*furl.Message]*future
	as      int // the number of the policy in future.prompts
	request int
	future  *future
}

// Plan plans with the other policy.
func (w *watch) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	plan, err := w.Policy.Plan(ctx, s, b)
	if err != nil {
		return nil, err
	}
	if w.future == nil && s.Len() > 0 {
		_, first := s.Message(0)
		w.future = w.futures[first]
	}
	if f := w.future; f != nil {
		f.prompts[w.as] = append(f.prompts[w.as], f.promptOf(w.request, plan.View, &b))
		if w.as == 0 {
			f.models = append(f.models, b.Model)
			f.fresh = append(f.fresh, f.freshIn(w.request, plan.View, &b))
		}
	}
	w.request++
	return plan, nil
}

// freshIn returns the tokens of the messages that no earlier request had.
func (f *future) freshIn(t int, v *furl.View, b *furl.Budget) int {
	tokens, items := 0, 0
	for i := range v.Messages {
		if m := f.messages[v.Messages[i].Msg]; m == nil || m.first < t {
			continue
		}
		for j := range v.Messages[i].Blocks {
			sb := &v.Messages[i].Blocks[j]
			tokens += sb.Tokens
			if k := sb.Block.Kind; k == furl.KindCall || k == furl.KindResult {
				items++
			}
		}
	}
	return b.Of(tokens, items)
}

// promptOf sizes the parts of a view. The fixed part follows from the whole prompt
// later.
func (f *future) promptOf(t int, v *furl.View, b *furl.Budget) prompt {
	var p prompt
	for i := range v.Units {
		u := &v.Units[i]
		p[partCalls] += float64(b.Of(0, u.Items))
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			of := partWords
			switch {
			case u.Kind == furl.UnitMark:
				of = partMarkers
			case sb.By != 0:
				of = partPlaceholders
			case sb.Block.Kind == furl.KindThinking:
				of = partThinking
			case sb.Block.IsResult():
				of = f.resultPart(t, v, u, sb)
			case u.Kind == furl.UnitStep && u.Items > 0:
				of = partCalls
			}
			p[of] += float64(b.Of(sb.Tokens, 0))
		}
	}
	return p
}

func (f *future) resultPart(t int, v *furl.View, u *furl.Unit, sb *furl.ShownBlock) part {
	at, _ := v.State.Find(sb.Pos.Msg)
	_, m := v.State.Message(at)
	switch known := f.messages[m]; {
	case known == nil:
		return partUnneeded
	case u.Newest:
		return partNew
	case known.needed[sb.Pos.Block] >= t:
		return partNeeded
	}
	return partUnneeded
}

// bill is a cost by part, in US dollars.
type bill [numParts]float64

func (b *bill) add(c *bill) {
	for i := range b {
		b[i] += c[i]
	}
}

// billOf splits the cost of one policy by part.
func (f *future) billOf(as int, points []replay.Point) bill {
	var out bill
	for t, p := range f.prompts[as] {
		if t >= len(points) || t >= len(f.prompt) {
			break
		}
		m := &f.models[t]
		dollars := price.For(m, points[t].Tokens, points[t].At).Input / 1e6
		read, write := readWrite(&furl.Budget{Model: *m, Size: points[t].Tokens})
		p[partFixed] = float64(points[t].Tokens)
		for of := partFixed + 1; of < partFirst; of++ {
			p[partFixed] -= p[of]
		}
		for of, tokens := range p {
			out[of] += tokens * read * dollars
		}
		written := float64(points[t].Tokens - points[t].Read)
		without := float64(f.prompt[t] - f.read[t])
		first := min(written, float64(f.fresh[t]))
		pauses := max(0, min(written-first, without-float64(f.fresh[t])))
		out[partFirst] += first * (write - read) * dollars
		out[partPauses] += pauses * (write - read) * dollars
		out[partRewrite] += (written - first - pauses) * (write - read) * dollars
	}
	return out
}
