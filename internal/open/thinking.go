package open

import (
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/storage"
)

// A provider refuses thinking that does not fit the prompt before it: a model that binds
// thinking although the catalog does not say so, or a signature from elsewhere, as after
// a store was lost or the client has changed its provider. The thinking of the path is then left
// out, by a reduction like others, and the model counts as one that binds: from then on,
// a view shows thinking only after the prompt that it was written after.

// leaveOutThinking records a reduction that hides all thinking of the view, nil if there
// is none to hide. It records none in a session that hides nothing and never will: its
// requests are as the client wrote them, and so is the refusal.
func (c *Change) leaveOutThinking(in Prompt) (*furl.Reduction, error) {
	b, view, _ := c.BudgetFor(in)
	p, err := c.policyFor(in)
	if err != nil || in.DryRun || policy.HidesNothing(p, &b) && !event.Hides(c.log.State()) {
		return nil, err
	}
	c.recordBinding(in)
	red := &furl.Reduction{Stage: furl.StageRefusedThinking, Reason: "the provider refused it", Before: b.Size, Scale: b.Scale}
	end := len(view.Units)
	if b.Model.Thinking.Required { // it refuses an open tool loop without its thinking
		for end > 0 && view.Units[end-1].Kind == furl.UnitStep {
			end--
		}
	}
	for i := range end {
		u := &view.Units[i]
		for j := range u.Blocks {
			if sb := &u.Blocks[j]; sb.Block.Kind == furl.KindThinking && sb.Pos.Msg != 0 {
				red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: furl.Gone{}})
			}
		}
	}
	if len(red.Items) == 0 {
		return nil, nil
	}
	st, err := c.log.State().With(red)
	if err != nil {
		return nil, err
	}
	red.After = b.After(view, st.View(b.Model)).Size
	_, err = c.Append(furl.Furl, red)
	return red, err
}

// maxBinding is the largest number of models in storage.Meta.Binding.
const maxBinding = 20

// recordBinding records that a model binds thinking in this session, and in all if the
// provider says so.
func (c *Change) recordBinding(in Prompt) {
	model := in.Model
	if in.ThinkingRefused.Bound {
		c.all.recordBinding(model)
	}
	m := c.Meta().Clone()
	if len(model) <= maxModelName && len(m.Binding) < maxBinding && !slices.Contains(m.Binding, model) {
		m.Binding = append(m.Binding, strings.Clone(model))
		c.SetMeta(m)
	}
}

// recordBinding records for all sessions that a model binds thinking, as its provider has
// said.
func (a *shared) recordBinding(model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.limits[model]
	l.binds = true
	a.setLimits(model, l)
}

// bindsThinking reports whether a model's provider has refused thinking, in a session with
// this metadata or in another one as bound to its prompt.
func (a *shared) bindsThinking(model string, meta *storage.Meta) bool {
	if slices.Contains(meta.Binding, model) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits[model].binds
}
