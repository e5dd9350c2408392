package exchange

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/wire"
)

// Some clients of OpenAI Responses send the model's items by the provider's id
// (item_reference) instead of their content. Such a reference names the recorded item
// with that id: the history matches, counts and is hidden as if the client had sent the
// item. It is
// sent as the client sent it, unless a part of the item is hidden. Then the recorded item is
// sent in its place, edited and without its id, which belongs to the content that the
// provider has stored. References to items that furl has not recorded stay as they are.

// firstReference returns the index of the first reference of a request that does not stand
// for a recorded item yet, and its id; -1 if there is none.
func (in *incoming) firstReference() (index int, id string) {
	api := wire.For(in.req.Format)
	for i := range in.req.Messages {
		if id := api.Reference(&in.req.Messages[i]); id != "" && in.references[i] == nil {
			return i, id
		}
	}
	return -1, ""
}

// resolveReferences replaces the references of a request to items of the session by these
// items, except for their bytes.
func (t *tx) resolveReferences(in *incoming) {
	from, _ := in.firstReference()
	if from < 0 {
		return
	}
	items := t.Items()
	api := wire.For(in.req.Format)
	msgs, found := in.req.Messages, false
	for i := from; i < len(msgs); i++ {
		id := api.Reference(&msgs[i])
		seq, ok := items[id]
		if id == "" || !ok || in.references[i] != nil {
			continue
		}
		item := t.Log().At(seq).Body.(*furl.Message)
		if in.references == nil {
			in.references = make(map[int]*furl.Message)
		}
		raw := msgs[i].Raw
		msgs[i], in.references[i], found = *item, item, true
		msgs[i].Raw = raw
	}
	if !found {
		return
	}
	chains := slices.Clone(in.chains)
	var chain furl.Digest
	if from > 0 {
		chain = chains[from-1]
	}
	for i := from; i < len(msgs); i++ {
		m := &msgs[i]
		if item := in.references[i]; item != nil {
			m = item
		}
		chain = m.Extend(chain)
		chains[i] = chain
	}
	in.chains = chains
}

// recordedForm returns the message to record for message i of the request: a copy of it, or
// of the item that it refers to.
func (in *incoming) recordedForm(i int) *furl.Message {
	if item := in.references[i]; item != nil {
		return cloneMessage(item)
	}
	return cloneMessage(&in.req.Messages[i])
}

// byReference returns the session that has the item of the history's first reference, among
// those with the same messages before it; nil if there is none. It waits for replies in
// flight.
func (a *Sessions) byReference(ctx context.Context, in *incoming) (*open.Session, error) {
	first, id := in.firstReference()
	if first < 1 || in.chains[first-1].IsZero() {
		return nil, nil
	}
	deadline := time.NewTimer(awaitTimeout)
	defer deadline.Stop()
	for {
		found, err := a.Match(ctx, in.chains[first-1:first], maxCandidates)
		if err != nil {
			return nil, fmt.Errorf("match references of history: %w", err)
		}
		var end <-chan struct{}
		for _, f := range found {
			s, err := a.OpenCached(ctx, f.Session)
			if err != nil {
				continue // deleted meanwhile
			}
			has := false
			a.read(s, func(t *tx) {
				if hint := t.Meta().Hint; in.hints.Hint != "" && hint != "" && hint != in.hints.Hint {
					return
				}
				_, has = t.Items()[id]
				for f := range t.Flights {
					if end == nil && f.First != 0 {
						end = f.Done
					}
				}
			})
			if has {
				return s, nil
			}
		}
		if end == nil {
			return nil, nil
		}
		select {
		case <-end:
		case <-deadline.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// markReferences marks the messages of the path that the request only refers to, so that
// their bytes are not edited.
func (p *pairing) markReferences(in *incoming) {
	if len(in.references) == 0 {
		return
	}
	for i, j := range p.to {
		if j >= 0 && in.references[j] != nil {
			if p.reworded == nil {
				p.reworded = make(map[int]bool)
			}
			p.reworded[i], p.identity = true, false
		}
	}
}
