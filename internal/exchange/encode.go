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
		v = reindexed(req, v, pairs)
	}
	return codec.EncodeRequest(req, v)
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
				case sh.AsRecorded():
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
