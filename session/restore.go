package session

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/transact"
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
	err := s.update(ctx, onDisk, func() error {
		from := s.log.Head()
		r, err := s.log.Rewind(to, s.all.o.Now(), furl.Person)
		if err != nil {
			return err
		}
		out = Rewound{To: r.Parent, Branch: from, Messages: s.log.State().Len()}
		return nil
	})
	return out, err
}

// Restored is the result of undoing a reduction or restoring blocks.
type Restored struct {
	// Record is the record of the restoration, 0 if it was only previewed.
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
}

// Undo undoes one reduction and no later record. Its blocks are shown as before it,
// and policies prefer to keep them from then on. If the reduction is not on the
// path, the error wraps furl.ErrNotOnPath.
func (s *Session) Undo(ctx context.Context, reduction furl.Seq) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Of: reduction}, false)
}

// PreviewUndo returns what Undo would do.
func (s *Session) PreviewUndo(ctx context.Context, reduction furl.Seq) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Of: reduction}, true)
}

// Restore shows the originals of blocks whatever hides them, and whole steps if a
// marker hides them. Policies prefer to keep them from then on.
func (s *Session) Restore(ctx context.Context, spans ...furl.Span) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Open: true, Spans: spans}, false)
}

// PreviewRestore returns what Restore would do.
func (s *Session) PreviewRestore(ctx context.Context, spans ...furl.Span) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Open: true, Spans: spans}, true)
}

// Pin prevents policies from hiding blocks in any case.
func (s *Session) Pin(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Pin}, false)
	return err
}

// Keep makes policies hide blocks only if the context does not fit otherwise.
func (s *Session) Keep(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Keep}, false)
	return err
}

// Release undoes Pin and Keep of blocks.
func (s *Session) Release(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Release}, false)
	return err
}

func (s *Session) restore(ctx context.Context, res *furl.Restoration, try bool) (Restored, error) {
	var out Restored
	f := func() error {
		st := s.log.State()
		b, before, _ := s.budgetFor(transact.Prompt{Model: s.meta.Model})
		out = Restored{Before: b.Size}
		r := furl.Record{Seq: furl.Seq(s.log.Len() + 1), Parent: s.log.Head(), Body: res}
		for _, e := range event.Of(st, r, b.Window) {
			if e, ok := e.(event.Restored); ok {
				out.Tokens = e.Tokens
			}
		}
		after := st
		if try {
			var err error
			if after, err = furl.Fold(s.log, s.log.Head()); err != nil {
				return err
			}
			if err := after.Apply(r); err != nil {
				return err
			}
		} else {
			rec, err := s.appendRecord(furl.Person, res)
			if err != nil {
				return err
			}
			out.Record, after = rec.Seq, s.log.State()
		}
		left := b.After(before, after.View(b.Model))
		out.After = left.Size
		if res.Of != 0 {
			out.Covered = after.Covering(res.Of)
		}
		return nil
	}
	if try {
		s.mu.Lock()
		defer s.mu.Unlock()
		return out, f()
	}
	err := s.update(ctx, onDisk, f)
	return out, err
}
