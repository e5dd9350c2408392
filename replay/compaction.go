package replay

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/token"
)

// compaction is a summary that the agent requested from a model to make its history shorter.
type compaction struct {
	at    time.Time
	model furl.Model
	asked bool // by the user
	// usage is that of its request, zero if it was not recorded. written is the summary
	// as counted.
	usage   furl.Usage
	written token.Part
	view    token.Part // that the agent had before, as counted
}

// avoidedBelow is the share of the agent's prompt, in percent, below which a policy's prompt
// counts as one that the agent would not have compacted. A prompt that is only a little smaller
// would have been compacted a little later.
const avoidedBelow = 90

// compactionPrompt is the size in tokens of what an agent adds to its history to ask for a
// summary: that of Claude Code 2.1.332.
const compactionPrompt = 2200

// compaction notes a compaction by the agent itself, before it is applied. In a session of the gateway its
// request is one of the recorded ones.
func (w *walker) compaction(r furl.Record, red *furl.Reduction) {
	if r.By != furl.Import || red.Summary == nil || red.Summary.Model == "" {
		return
	}
	c := &compaction{at: r.At, usage: red.Summary.Usage, asked: red.Reason == "manual"}
	c.model, _ = w.o.model(red.Summary.Model, w.rec)
	c.written = token.Part{Tokens: w.s.counter.Count(red.Summary.Text)}
	c.view = token.PartOfView(w.state.View(c.model))
	w.s.compactions[r.Seq] = c
}

// compact lets the run pay for a compaction by the agent, unless the agent would not have
// compacted: its prompt under the policy is much smaller than it was.
func (r *run) compact(c *compaction) error {
	q := r.current
	if q == nil || q.again {
		return nil
	}
	view := r.log.State().View(c.model)
	mine, recorded := q.fixed+r.s.sizes.Added(token.PartOfView(view)), q.fixed+r.s.sizes.Added(c.view)
	if !c.asked && 100*mine < avoidedBelow*recorded {
		return nil
	}
	if c.usage.Prompt() > 0 {
		cost := usageCost(&c.model, c.usage, c.at)
		r.agent.add(bought{cost.Input() + cost.Output, c.usage.Prompt() + c.usage.Output})
		return nil
	}
	if err := r.render(view); err != nil {
		return err
	}
	pieces := append(r.pieces(view, q), piece{ID: promptID, Tokens: compactionPrompt, Positions: 1})
	s := r.cache.summary(c.model.Caching, c.model.ID, pieces, c.at)
	written := r.s.sizes.Added(c.written)
	prices := price.For(&c.model, s.prompt(), c.at)
	cost := bought{bill(&c.model, s, c.at).Input() + float64(written)*prices.Output/1e6, s.prompt() + written}
	r.agent.add(cost)
	r.out.Unrecorded += cost.dollars
	return nil
}
