package web

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/lost"
	"github.com/furlhq/furl/policy"
)

// marker describes a reduction in the transcript (C8).
type marker struct {
	policy.Reduced
	Line   string // such as "Context Compacted #1 — 45 messages archived, ~150,000 tokens freed"
	Cost   furl.Cost
	Loses  bool         // it is a compaction, of which the page shows what it lost
	Hidden []hiddenPart // at most maxMarked
	More   int          // how many more it hides
	Acts   []button
}

// hiddenPart is a block or a run of messages that a reduction hides.
type hiddenPart struct {
	part
	Shown string // the placeholder, "" if there is none
}

// Bounds on what a marker shows: the number of hidden blocks that it lists, and the sizes of
// placeholders and of a summary, in bytes.
const (
	maxMarked          = 200
	maxMarkPlaceholder = 2000
	maxMarkSummary     = 100 << 10
)

// firstBytes returns the beginning of a text.
func firstBytes(s string, n int) string {
	head, more := cut(s, n)
	if more {
		head += fmt.Sprintf("… %s more bytes", thousands(len(s)-len(head)))
	}
	return head
}

// reduction returns a reduction on the path, nil if there is none of this number.
func (m *moment) reduction(seq furl.Seq) *policy.Reduced {
	if _, ok := m.state.Reduction(seq); !ok {
		return nil
	}
	list := policy.Reductions(m.state)
	for i := range list {
		if list[i].Seq == seq {
			return &list[i]
		}
	}
	return nil
}

// marker returns the marker of a reduction.
func (m *moment) marker(r *policy.Reduced) *marker {
	out := &marker{Reduced: *r, Line: reductionLine(r)}
	out.Summary = firstBytes(r.Summary, maxMarkSummary)
	applied, ok := m.state.Reduction(r.Seq)
	if !ok {
		return out
	}
	out.Cost = applied.Cost
	out.Loses = lost.IsCompaction(applied.Reduction, applied.By)
	out.Acts = m.reductionActs(r)
	for i := range applied.Items {
		shown := ""
		if in, ok := applied.Items[i].Show.(furl.In); ok {
			shown = firstBytes(in.Text, maxMarkPlaceholder)
		}
		for _, sp := range applied.Items[i].Spans {
			m.blocksOf(sp, func(pos furl.Pos, msg *furl.Message, b *furl.Block) {
				if len(out.Hidden) == maxMarked || len(out.Hidden) >= minParts && m.room.parts >= maxChunkParts {
					out.More++
					return
				}
				out.Hidden = append(out.Hidden, hiddenPart{m.part(pos, msg, b), shown})
				m.room.parts++
			})
		}
	}
	return out
}

// reductionLine describes a reduction in a line.
func reductionLine(r *policy.Reduced) string {
	line, _, _ := chat.Describe(r.Event(), r.After)
	return line
}

// blocksOf calls f with the blocks of a span.
func (m *moment) blocksOf(sp furl.Span, f func(furl.Pos, *furl.Message, *furl.Block)) {
	from, ok := m.state.Find(sp.First.Msg)
	if !ok {
		return
	}
	for i := from; i < m.state.Len(); i++ {
		seq, msg := m.state.Message(i)
		for j := range msg.Blocks {
			pos := furl.Pos{Msg: seq, Block: j}
			if seq == sp.First.Msg && j < sp.First.Block || seq == sp.Last.Msg && j > sp.Last.Block {
				continue
			}
			f(pos, msg, &msg.Blocks[j])
		}
		if seq >= sp.Last.Msg {
			return
		}
	}
}

// nextMarker responds with the record of the next reduction after the record "after", or
// the previous one; 0 if there is none.
func (p *Page) nextMarker(v *visit) error {
	after, _ := strconv.Atoi(v.r.FormValue("after")) // 0 if there is no selection
	back := v.r.FormValue("direction") == "previous"
	return v.atMoment(func(m *moment) error {
		found := furl.Seq(0)
		for _, r := range policy.Reductions(m.state) {
			switch {
			case back && (after == 0 || r.Seq < furl.Seq(after)):
				found = r.Seq
			case !back && r.Seq > furl.Seq(after) && found == 0:
				found = r.Seq
			}
		}
		v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		v.send(http.StatusOK, []byte(seqKey(found)))
		return nil
	})
}
