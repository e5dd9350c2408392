package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// Follow repeats a recorded session: it adds the recorded user messages and
// results, compacts where the agent compacted, and sends each request that
// the agent sent. It takes the model's messages from the answers, as an agent
// does. It stops at the first request that fails, and at an answer that calls
// other tools than the recording; a [Playback] of the same session returns no
// such answer. limit is the maximum number of requests; 0: all.
//
// Requests are in the client's format, whatever the recording's is.
// Instructions and tools are the client's.
func (c *Client) Follow(ctx context.Context, s *transcript.Session, limit int) error {
	f := follower{Client: c, state: new(furl.State), said: make(map[furl.Seq][]json.RawMessage)}
	path := s.Log.Path(s.Log.Head())
	answered := false // the next records are part of the newest answer
	for i, r := range path {
		switch body := r.Body.(type) {
		case *furl.Exchange:
			reply, from := replyIn(path[i+1:])
			if answered = true; len(reply) == 0 {
				break // it was not answered, or by thinking only
			}
			if limit > 0 && c.Requests >= limit {
				return nil
			}
			if err := f.request(ctx, from, reply); err != nil {
				return fmt.Errorf("follow record %d: %w", r.Seq, err)
			}
		case *furl.Message:
			answered = answered && body.Role == furl.RoleAssistant
			if answered && f.said[r.Seq] == nil {
				f.said[r.Seq] = []json.RawMessage{} // already part of an earlier message
			}
		}
		if err := f.state.Apply(r); err != nil {
			return fmt.Errorf("follow record %d: %w", r.Seq, err)
		}
	}
	return nil
}

type follower struct {
	*Client
	state *furl.State
	said  map[furl.Seq][]json.RawMessage // the model's messages that replace records
}

// replyIn returns the calls and texts of the reply at the start of a path,
// nil if there is none, and its first record.
func replyIn(path []furl.Record) (reply []furl.Block, from furl.Seq) {
	for _, r := range path {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			if _, again := r.Body.(*furl.Exchange); again && from != 0 {
				break
			}
			continue
		}
		if m.Role != furl.RoleAssistant {
			break
		}
		if from == 0 {
			from = r.Seq
		}
		for i := range m.Blocks {
			if k := m.Blocks[i].Kind; k == furl.KindCall || k == furl.KindText {
				reply = append(reply, m.Blocks[i])
			}
		}
	}
	return reply, from
}

// request sends the request that the agent sent.
func (f *follower) request(ctx context.Context, from furl.Seq, want []furl.Block) error {
	codec, _ := f.codec()
	f.History = f.History[:0]
	view := f.state.View(furl.Model{})
	for i := range view.Messages {
		sh := &view.Messages[i]
		raws, said := f.said[sh.Seq]
		if !said || !sh.AsRecorded() {
			one := *sh
			one.Blocks = slices.DeleteFunc(slices.Clone(sh.Blocks), func(b furl.ShownBlock) bool {
				return b.Block.Kind == furl.KindThinking // only the recorded model can sign it
			})
			var err error
			if raws, err = codec.EncodeMessage(one); err != nil {
				return fmt.Errorf("encode record %d: %w", sh.Seq, err)
			}
		}
		f.History = append(f.History, raws...)
	}
	reply, err := f.Send(ctx)
	if err != nil {
		return err
	}
	if got, want := ids(callsOf(reply)), ids(want); !slices.Equal(got, want) {
		return fmt.Errorf("answer to request %d calls %q, but the recording continues with %q", f.Requests, got, want)
	}
	raws := []json.RawMessage{}
	for _, m := range reply.Messages {
		raws = append(raws, m.Raw)
	}
	f.said[from] = raws
	return nil
}

// ids returns the ids of the calls among blocks.
func ids(blocks []furl.Block) (ids []string) {
	for i := range blocks {
		if blocks[i].Kind == furl.KindCall {
			ids = append(ids, blocks[i].ID)
		}
	}
	return ids
}
