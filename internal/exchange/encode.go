package exchange

import (
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// encode applies a view to the body of a request whose history is the view's path.
// If the view shows all messages as recorded, it returns the body unchanged.
func encode(req *protocol.Request, v *furl.View, pairs pairing) ([]byte, error) {
	if asRecorded(v) && !pairs.hasOwn {
		return req.Body, nil
	}
	codec := wire.For(req.Format)
	if codec == nil {
		return nil, fmt.Errorf("unknown wire format %q", req.Format)
	}
	if !pairs.identity {
		if v = reindexed(req, v, pairs); sentAsReceived(req, v) {
			return req.Body, nil
		}
	}
	return codec.EncodeRequest(req, v)
}

// sentAsReceived reports whether a view shows all messages of the request, unchanged.
func sentAsReceived(req *protocol.Request, v *furl.View) bool {
	if v.Dropped > 0 || len(v.Messages) != len(req.Messages) {
		return false
	}
	for i := range v.Messages {
		if sh := &v.Messages[i]; sh.Index != i || !sh.AsRecorded() {
			return false
		}
	}
	return true
}

// asRecorded reports whether a view shows all messages of its path as recorded.
func asRecorded(v *furl.View) bool {
	return v.Dropped == 0 && len(v.Messages) == v.State.Len() &&
		!slices.ContainsFunc(v.Messages, func(s furl.Shown) bool { return s.Index < 0 || !s.AsRecorded() })
}

// reindexed returns a view whose message indexes are those of the request, as
// codecs expect. Content that the request has in other messages is sent as
// recorded.
func reindexed(req *protocol.Request, v *furl.View, pairs pairing) *furl.View {
	out := *v
	out.Messages = make([]furl.Shown, 0, len(v.Messages)+len(pairs.unrecorded))
	extra := pairs.unrecorded
	if hidesGap(v.State, pairs.gap) {
		// What the client has in place of messages is hidden with them.
		extra = slices.DeleteFunc(slices.Clone(extra), func(j int) bool { return pairs.fills(j) })
	}
	flush := func(before int) {
		for len(extra) > 0 && extra[0] < before {
			out.Messages = append(out.Messages, shownAsSent(&req.Messages[extra[0]], extra[0]))
			extra = extra[1:]
		}
	}
	started := false
	for _, sh := range v.Messages {
		if sh.Index < 0 && sh.By != 0 && sh.By == pairs.mark {
			for i := 0; i < pairs.start && !started; i++ {
				out.Messages = append(out.Messages, shownAsSent(&req.Messages[i], i))
			}
			started = true
			continue
		}
		if sh.Index < 0 && clientMark(v.State, sh.By) != nil {
			continue // the request has these messages
		}
		if sh.Index >= 0 {
			switch to := pairs.to[sh.Index]; to {
			case notSent:
				continue
			case regrouped:
				sh.Index = -1
			default:
				flush(to)
				switch {
				case !pairs.reworded[sh.Index]:
					sh.Index = to
				case sh.AsRecorded(), changedByClient(v.State, &sh):
					sh = shownAsSent(&req.Messages[to], to)
				default:
					sh.Index = -1 // send it as recorded, so that parts of it can be hidden
				}
			}
		}
		out.Messages = append(out.Messages, sh)
	}
	flush(len(req.Messages))
	return &out
}

// changedByClient reports whether a message is shown whole, and only with changes of
// the client, which the request has.
func changedByClient(st *furl.State, sh *furl.Shown) bool {
	if len(sh.Blocks) != len(sh.Msg.Blocks) {
		return false
	}
	for i := range sh.Blocks {
		if by := sh.Blocks[i].By; by != 0 {
			if red, ok := st.Reduction(by); !ok || red.Stage != furl.StageClient {
				return false
			}
		}
	}
	return true
}

// hidesGap reports whether a policy hides all messages that the client has left out
// or replaced.
func hidesGap(st *furl.State, gap span) bool {
	for i := gap.from; i < gap.to; i++ {
		seq, m := st.Message(i)
		for k := range max(1, len(m.Blocks)) {
			if by := st.ShownBy(furl.Pos{Msg: seq, Block: k}); by == 0 || clientMark(st, by) != nil {
				return false
			}
		}
	}
	return gap.from < gap.to
}

// withoutThinking returns a request's body without its thinking. ok is false if
// the model does not bind thinking to its prompt, or there is none.
func withoutThinking(req *protocol.Request, m furl.Model) ([]byte, bool) {
	codec := wire.For(req.Format)
	if !m.Thinking.Binds || codec == nil {
		return nil, false
	}
	log := furl.NewLog()
	gone := &furl.Reduction{Stage: "unbind"}
	for i := range req.Messages {
		msg := &req.Messages[i]
		r, err := log.Append(log.Head(), time.Time{}, furl.Client, msg)
		if err != nil {
			return nil, false
		}
		for k := range msg.Blocks {
			if msg.Blocks[k].Kind == furl.KindThinking {
				gone.Items = append(gone.Items, furl.Item{Spans: []furl.Span{spanOf(furl.Pos{Msg: r.Seq, Block: k})}, Show: furl.Gone{}})
			}
		}
	}
	if len(gone.Items) == 0 {
		return nil, false
	}
	if _, err := log.Append(log.Head(), time.Time{}, furl.Furl, gone); err != nil {
		return nil, false
	}
	body, err := codec.EncodeRequest(req, log.State().View(furl.Model{}))
	return body, err == nil
}
