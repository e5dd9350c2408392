package session

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// spanOf is the span of one block.
func spanOf(p furl.Pos) furl.Span { return furl.Span{First: p, Last: p} }

// Rewound says what a rewind did.
type Rewound struct {
	// To is the record that the conversation goes on from: the one asked for,
	// or the last before it that ends a step; 0: it starts anew.
	To furl.Seq `json:"to"`
	// Branch is where the conversation stood before: rewinding to it goes
	// back.
	Branch furl.Seq `json:"branch"`
	// Messages are how many of the path are left.
	Messages int `json:"messages"`
}

// Rewind makes the conversation go on from an earlier record, or from the last
// one before it that ends a step, and says where. What was hidden after it is
// visible again; what came after stays in the log, on a branch. A record that
// there is not is an error wrapping furl.ErrNotOnPath.
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

// Restored says what a restoration did.
type Restored struct {
	// Record is the restoration's own; 0 if it was only tried.
	Record furl.Seq `json:"record"`
	// Tokens is the size of what is shown as recorded again, in the
	// provider's tokens.
	Tokens int `json:"tokens"`
	// Before and After are the sizes of the context, in the provider's tokens.
	Before int `json:"context_size_before"`
	After  int `json:"context_size_after"`
	// Covered lists other reductions that still show something in place of
	// what was lifted: nothing visible changes there while they do.
	Covered []furl.Seq `json:"covered_by,omitempty"`
}

// Lift takes one reduction back and keeps all that came after it. What it hid
// is shown, or what lies beneath it, and is kept from then on. A reduction that
// is not on the path is an error wrapping furl.ErrNotOnPath.
func (s *Session) Lift(ctx context.Context, reduction furl.Seq) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Of: reduction}, false)
}

// PreviewLift tells what Lift would do.
func (s *Session) PreviewLift(ctx context.Context, reduction furl.Seq) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Of: reduction}, true)
}

// Restore shows the originals of blocks through everything that hides them,
// whole steps where a mark hid them, and keeps them from then on.
func (s *Session) Restore(ctx context.Context, spans ...furl.Span) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Open: true, Spans: spans}, false)
}

// PreviewRestore tells what Restore would do.
func (s *Session) PreviewRestore(ctx context.Context, spans ...furl.Span) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Open: true, Spans: spans}, true)
}

// Pin keeps blocks from being hidden, whatever happens.
func (s *Session) Pin(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Pin}, false)
	return err
}

// Keep has blocks hidden only when the window cannot be kept to otherwise.
func (s *Session) Keep(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Keep}, false)
	return err
}

// Release takes back that blocks were kept or pinned.
func (s *Session) Release(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Release}, false)
	return err
}

func (s *Session) restore(ctx context.Context, res *furl.Restoration, try bool) (Restored, error) {
	var out Restored
	f := func() error {
		st := s.log.State()
		b, before, _ := s.budgetFor(Prompt{Model: s.meta.Model})
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
			rec, err := s.add(furl.Person, res)
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
