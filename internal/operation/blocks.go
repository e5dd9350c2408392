package operation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// Blocks are the messages or blocks that an operation is about.
type Blocks struct {
	Handles []string `json:"handles,omitempty" arg:"HANDLE..." help:"handles such as furl:12.0, record numbers of messages, or ranges of them such as 40-120"`
}

// maxNamed is the number of handles that are named in a result; others are counted.
const maxNamed = 5

// what returns what the blocks are called.
func (b *Blocks) what(c *Call) string {
	if c.What != "" {
		return c.What
	}
	if n := len(b.Handles); n > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(b.Handles[:maxNamed], ", "), n-maxNamed)
	}
	return strings.Join(b.Handles, ", ")
}

// pronoun is "it" for one message or block, and "them" for several.
func (b *Blocks) pronoun() string {
	if len(b.Handles) == 1 {
		if _, _, several := parseRange(b.Handles[0]); !several {
			return "it"
		}
	}
	return "them"
}

// spans returns the places of the blocks in the session.
func (b *Blocks) spans(c *Call) (spans []furl.Span, err error) {
	if len(b.Handles) == 0 {
		return nil, invalid("missing handles: expected handles, record numbers of messages, or ranges such as 40-120")
	}
	for _, name := range b.Handles {
		found, err := spansOf(c, name)
		if err != nil {
			return nil, err
		}
		spans = append(spans, found...)
	}
	return slices.Clip(spans), nil
}

func spansOf(c *Call, name string) ([]furl.Span, error) {
	if first, last, ok := parseRange(name); ok {
		return inRange(c, first, last)
	}
	h, err := recall.ParseHandle(name)
	if err != nil {
		return nil, Invalid{err}
	}
	if strings.HasPrefix(string(c.Session.ID()), string(h.Session)) {
		h.Session = "" // furl search prints the beginning of the id
	}
	spans, err := c.Session.Spans(h.String())
	switch {
	case !errors.Is(err, furl.ErrNotOnPath):
		return spans, err
	case h.Session != "":
		return nil, &UnknownBlock{fmt.Sprintf("%s is a handle of another session than %s", h, c.Session.ID())}
	case h.Block >= 0:
		return nil, &UnknownBlock{fmt.Sprintf("%s has no such block %s", c.Session.ID(), recall.HandleOf(h.Pos()))}
	}
	return nil, &UnknownBlock{fmt.Sprintf("%s has no message %s", c.Session.ID(), recall.HandleOf(h.Pos()))}
}

// UnknownBlock is the error for a handle or a reduction that the session does not have. It wraps
// furl.ErrNotOnPath.
type UnknownBlock struct{ text string }

func (e *UnknownBlock) Error() string { return e.text }

// Unwrap returns furl.ErrNotOnPath.
func (e *UnknownBlock) Unwrap() error { return furl.ErrNotOnPath }

// parseRange parses two record numbers with a hyphen or dash between them.
func parseRange(name string) (first, last furl.Seq, ok bool) {
	a, b, found := strings.Cut(strings.Replace(name, "–", "-", 1), "-")
	x, errA := strconv.ParseUint(a, 10, 63)
	y, errB := strconv.ParseUint(b, 10, 63)
	return furl.Seq(x), furl.Seq(y), found && errA == nil && errB == nil
}

// inRange returns the messages of the current branch in a range of records, both ends
// included.
func inRange(c *Call, first, last furl.Seq) (spans []furl.Span, err error) {
	if first > last {
		return nil, invalid(fmt.Sprintf("the range %d-%d ends before it begins", first, last))
	}
	c.Session.Internal().Read(func(ch *open.Change) {
		st := ch.Log().State()
		for i := range st.Len() {
			seq, m := st.Message(i)
			if seq < first || seq > last || len(m.Blocks) == 0 {
				continue
			}
			spans = append(spans, furl.Span{First: furl.Pos{Msg: seq}, Last: furl.Pos{Msg: seq, Block: len(m.Blocks) - 1}})
		}
	})
	if len(spans) == 0 {
		return nil, &UnknownBlock{fmt.Sprintf("%s has no message in the records %d to %d of its current branch", c.Session.ID(), first, last)}
	}
	return spans, nil
}

// Seen is how the model sees chosen blocks.
type Seen struct {
	Weakest, Strongest furl.Hold // of all of them
	Hidden             bool      // some of them are not shown as recorded
	Marked             bool      // a marker replaces the step of some of them
	Inside             bool      // some of them can be hidden inside their step
}

// Look returns how the model sees the blocks in the spans.
func Look(s *session.Session, spans []furl.Span) (out Seen) {
	s.Internal().Read(func(c *open.Change) {
		st := c.Log().State()
		out = LookAt(st, st.View(c.Model(c.Meta().Model)), func(f func(furl.Pos, *furl.Message, *furl.Block)) { each(c, spans, f) })
	})
	return out
}

// LookAt is Look for blocks of a state, whose view is v. each calls its argument for each of
// the blocks.
func LookAt(st *furl.State, v *furl.View, each func(func(furl.Pos, *furl.Message, *furl.Block))) (out Seen) {
	holds := make(map[furl.Pos]furl.Hold)
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			b := &v.Messages[i].Blocks[j]
			holds[b.Pos] = b.Hold
		}
	}
	none := true
	each(func(pos furl.Pos, _ *furl.Message, b *furl.Block) {
		hold, shown := holds[pos]
		if none {
			out.Weakest, none = hold, false
		}
		out.Weakest, out.Strongest = min(out.Weakest, hold), max(out.Strongest, hold)
		out.Inside = out.Inside || b.IsResult() || b.Kind == furl.KindCall
		if st.ShownBy(pos) != 0 {
			out.Hidden = true
			out.Marked = out.Marked || !shown
		}
	})
	return out
}

// each calls f for the blocks in the spans that are recorded.
func each(c *open.Change, spans []furl.Span, f func(furl.Pos, *furl.Message, *furl.Block)) {
	for _, sp := range spans {
		for seq := sp.First.Msg; seq <= sp.Last.Msg && seq <= furl.Seq(c.Log().Len()); seq++ {
			m, ok := c.Log().At(seq).Body.(*furl.Message)
			if !ok {
				continue
			}
			for i := range m.Blocks {
				pos := furl.Pos{Msg: seq, Block: i}
				if !(seq == sp.First.Msg && i < sp.First.Block) && !(seq == sp.Last.Msg && i > sp.Last.Block) {
					f(pos, m, &m.Blocks[i])
				}
			}
		}
	}
}
