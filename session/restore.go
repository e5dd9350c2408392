package session

import (
	"context"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
)

// spanOf returns the span of one block.
func spanOf(p furl.Pos) furl.Span { return furl.Span{First: p, Last: p} }

// Rewound is the result of a rewind.
type Rewound struct {
	// To is the new head: the requested record, or the last record before it that
	// ends a step; 0 is the root.
	To furl.Seq `json:"to"`
	// Branch is the previous head. Rewind to it to go back.
	Branch furl.Seq `json:"branch"`
	// Messages is the number of messages on the new path.
	Messages int `json:"messages"`
}

// Rewind continues the conversation from an earlier record, or from the last record
// before it that ends a step. Later reductions no longer apply; later records stay
// in the log on a branch. If the record does not exist, the error wraps
// furl.ErrNotOnPath.
func (s *Session) Rewind(ctx context.Context, to furl.Seq) (Rewound, error) {
	var out Rewound
	err := s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error {
		from := c.Log().Head()
		r, err := c.Rewind(to, furl.Person)
		if err != nil {
			return err
		}
		out = Rewound{To: r.Parent, Branch: from, Messages: c.Log().State().Len()}
		return nil
	})
	return out, err
}

// RestoreOptions say what Restore shows again: set Reduction or Spans.
type RestoreOptions struct {
	// Reduction is a reduction to undo. No later record is undone. Its blocks are
	// shown as before it. If it is not on the path, the error wraps
	// furl.ErrNotOnPath.
	Reduction furl.Seq
	// Spans are blocks to show as recorded, whatever hides them, with their whole
	// steps if a marker hides these. See Session.Spans.
	Spans []furl.Span
	// DryRun changes nothing: the result is what Restore would do.
	DryRun bool
}

// Restored is the result of Restore.
type Restored struct {
	// Record is the record of the restoration, 0 after a dry run.
	Record furl.Seq `json:"record"`
	// Tokens is the size of the blocks that are shown again, in the provider's
	// tokens.
	Tokens int `json:"tokens"`
	// Before and After are the sizes of the context, in the provider's tokens.
	Before int `json:"context_size_before"`
	After  int `json:"context_size_after"`
	// Covered are other reductions that still replace blocks of the undone one.
	// The view does not change there.
	Covered []furl.Seq `json:"covered_by,omitempty"`
	// Price is what that does to the price of later requests.
	Price policy.Price `json:"-"`
}

// Restore undoes a reduction, or shows blocks again whatever hides them. Policies
// prefer to keep these blocks from then on.
func (s *Session) Restore(ctx context.Context, o RestoreOptions) (Restored, error) {
	if o.Reduction == 0 {
		return s.restore(ctx, &furl.Restoration{Open: true, Spans: o.Spans}, o.DryRun)
	}
	if len(o.Spans) > 0 {
		return Restored{}, errors.New("restore: both Reduction and Spans are set; set one of them")
	}
	return s.restore(ctx, &furl.Restoration{Of: o.Reduction}, o.DryRun)
}

// Hold limits what policies may hide: with furl.Keep they hide the blocks only if the
// context does not fit otherwise, with furl.Pin never, and furl.Release ends both.
func (s *Session) Hold(ctx context.Context, hold furl.Hold, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: hold}, false)
	return err
}

func (s *Session) restore(ctx context.Context, res *furl.Restoration, dryRun bool) (Restored, error) {
	var out Restored
	f := func(c *open.Change) (err error) {
		st := c.Log().State()
		b, before, _ := c.BudgetFor(open.Prompt{Model: c.Meta().Model})
		out = Restored{Before: b.Size}
		r := furl.Record{Seq: furl.Seq(c.Log().Len() + 1), Parent: c.Log().Head(), Body: res}
		for _, e := range event.Of(st, r, b.Window) {
			if e, ok := e.(event.Restored); ok {
				out.Tokens = e.Tokens
			}
		}
		after := st
		if dryRun {
			if after, err = furl.Fold(c.Log(), c.Log().Head()); err != nil {
				return err
			}
			if err := after.Apply(r); err != nil {
				return err
			}
		} else {
			rec, err := c.Append(furl.Person, res)
			if err != nil {
				return err
			}
			out.Record, after = rec.Seq, c.Log().State()
		}
		out.Price = policy.PriceOf(before, after.View(b.Model), b)
		out.After = out.Price.After
		if res.Of != 0 {
			out.Covered = after.Covering(res.Of)
		}
		return nil
	}
	if dryRun {
		var err error
		s.Internal().Read(func(c *open.Change) { err = f(c) })
		return out, err
	}
	err := s.Internal().Update(ctx, open.OnDisk, f)
	return out, err
}
