package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/internal/recalltext"
	"github.com/furlhq/furl/tool"
)

// prepareRecall sets the recall tools of this run: those that the session has had from
// its first request on, or all if there was no request and Options.Recall is set. So
// the tools of a session do not change, which would invalidate the prompt cache.
func (r *run) prepareRecall(ctx context.Context) error {
	var listed string
	begins := r.o.Recall && !r.o.Playback
	r.s.Internal().Read(func(c *open.Change) {
		listed = c.Meta().Settings[open.SettingRecall]
		begins = begins && listed == "" && !slices.ContainsFunc(c.Log().Records(0), func(rec furl.Record) bool {
			_, sent := rec.Body.(*furl.Exchange)
			return sent
		})
	})
	offered := recalltext.Offer(listed, begins, func(name string) bool { return r.tools[name] != nil })
	r.recall = nil
	for _, t := range offered {
		r.recall = append(r.recall, tool.Tool{
			Name: t.Name, Description: t.About, Schema: json.RawMessage(t.Schema),
			Run: func(ctx context.Context, input json.RawMessage) (tool.Result, error) {
				text, err := recalltext.Answer(ctx, r.s, r.o.Logger, t.Name, input)
				return tool.Text(text), err
			},
		})
	}
	if !begins || len(offered) == 0 {
		return nil
	}
	return r.s.Internal().Update(ctx, open.Committed, func(tx *open.Change) error {
		m := tx.Meta().Clone()
		if m.Settings == nil {
			m.Settings = make(map[string]string)
		}
		m.Settings[open.SettingRecall] = recalltext.Names(offered)
		tx.SetMeta(m)
		return nil
	})
}

// allTools returns the tools that requests have.
func (r *run) allTools() []tool.Tool { return slices.Concat(r.o.Tools, r.recall) }

// toolNamed returns a tool, nil if there is none of this name.
func (r *run) toolNamed(name string) *tool.Tool {
	if r.isRecall(name) {
		return &r.recall[slices.IndexFunc(r.recall, func(t tool.Tool) bool { return t.Name == name })]
	}
	return r.tools[name]
}

// isRecall reports whether a tool is one of furl's recall tools.
func (r *run) isRecall(name string) bool {
	return slices.ContainsFunc(r.recall, func(t tool.Tool) bool { return t.Name == name })
}

// countRecall counts the replies in a row that call recall tools. As in the gateway,
// other calls end the row after their reply.
func (r *run) countRecall(calls []Call) {
	recalls := 0
	for _, c := range calls {
		if r.isRecall(c.Name) {
			recalls++
		}
	}
	if !r.onlyRecall {
		r.rounds = 0
	}
	r.onlyRecall = recalls > 0 && recalls == len(calls)
	if recalls > 0 {
		r.rounds++
	}
}

// runRecall answers the call of a recall tool within the limits; n is the number of
// such calls before it in the reply.
func (r *run) runRecall(ctx context.Context, c Call, n int, events chan<- Event) finished {
	if r.rounds > recalltext.MaxRounds || n >= recalltext.MaxCalls {
		return finished{result: tool.Failed(recalltext.ErrTooMany)}
	}
	f := runTool(ctx, r.toolNamed(c.Name), c, events)
	if r.rounds == recalltext.MaxRounds && r.onlyRecall && !f.result.Error {
		f.result = tool.Text(f.result.Text() + recalltext.LastRound)
	}
	return f
}

// recordRecall appends the result of a recall tool. It is marked as furl's, so searches
// do not find it. An original that the model has requested by its handle is preferably
// kept; otherwise the next plan would hide it again.
func (r *run) recordRecall(ctx context.Context, m *furl.Message, c Call, failed bool) error {
	for i := range m.Blocks {
		m.Blocks[i].Own = true
	}
	return r.s.Internal().Update(ctx, open.Committed, func(tx *open.Change) error {
		m.Measure(tx.Counter(tx.Meta().Model))
		rec, err := tx.Append(furl.Furl, m)
		if err != nil || failed || c.Name != recalltext.ToolGet {
			return err
		}
		var kept []furl.Span
		for i := range m.Blocks {
			p := furl.Pos{Msg: rec.Seq, Block: i}
			kept = append(kept, furl.Span{First: p, Last: p})
		}
		_, err = tx.Append(furl.Furl, &furl.Restoration{Spans: kept, Hold: furl.Keep})
		return err
	})
}
