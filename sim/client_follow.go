package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// Follow goes through a recorded session as its agent did: it says what was
// said and gives what tools gave, compacts where the agent compacted, and
// sends each request that the agent sent. The model's part it takes from the
// answers, as an agent does. It ends at the first request that fails, and at
// an answer that calls other tools than the recording goes on with; a
// [Playback] of the same session gives none such. Limit is the most requests
// to send; 0: all.
//
// Requests are in the client's format whatever the recording's is. Instructions
// and tools are the client's own.
func (c *Client) Follow(ctx context.Context, s *transcript.Session, limit int) error {
	f := follower{Client: c, state: furl.NewState(), said: make(map[furl.Seq][]json.RawMessage)}
	path := s.Log.Path(s.Log.Head())
	answered := false // what comes now is part of the newest answer
	for i, r := range path {
		switch body := r.Body.(type) {
		case *furl.Exchange:
			reply, from := replyIn(path[i+1:])
			if answered = true; len(reply) == 0 {
				break // it was never answered, or by thinking alone
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
				f.said[r.Seq] = []json.RawMessage{} // part of what was said already
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
	said  map[furl.Seq][]json.RawMessage // what the model said in the place of records
}

// replyIn gives the calls and texts of the reply that a path begins with, nil
// if there is none, and its first record.
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

// request sends what the agent sent.
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
				return b.Block.Kind == furl.KindThinking // which nobody but the recorded model has signed
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
		return fmt.Errorf("the answer to request %d calls %q, the recording goes on with %q", f.Requests, got, want)
	}
	raws := []json.RawMessage{}
	for _, m := range reply.Messages {
		raws = append(raws, m.Raw)
	}
	f.said[from] = raws
	return nil
}

// ids names the calls among blocks.
func ids(blocks []furl.Block) (ids []string) {
	for i := range blocks {
		if blocks[i].Kind == furl.KindCall {
			ids = append(ids, blocks[i].ID)
		}
	}
	return ids
}
