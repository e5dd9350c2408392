package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// RequestView is what the model saw at a recorded request.
type RequestView struct {
	Request
	// Requests is the number of requests on the current path, 0 if the request is on
	// another branch.
	Requests int
	// View has the messages that the model saw. Messages and blocks that are recorded
	// name their record, and placeholders name the reduction that shows them. Its State
	// is that of the path at the request.
	View *furl.View
	// Sent has the messages of the body that the provider received, byte for byte in
	// Msg.Raw; nil if the body is not recorded. View then has the same messages.
	Sent *furl.View
	// Preamble are the instructions and tools of that body.
	Preamble []furl.Block
}

// noRequestError means that the path has no such request. It is furl.ErrNotOnPath.
type noRequestError string

func (e noRequestError) Error() string        { return string(e) }
func (e noRequestError) Is(target error) bool { return target == furl.ErrNotOnPath }

// ViewAtRequest returns what the model saw at a request of the current path. number
// counts them from 1, as Request.Number does; 0 is the last one. If the body of the
// request is not recorded, as in imported sessions, the view follows from the records. If
// there is no such request, the error wraps furl.ErrNotOnPath.
func (s *Session) ViewAtRequest(ctx context.Context, number int) (*RequestView, error) {
	list, err := s.Requests()
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, noRequestError("the session has no requests: it contains no model replies")
	case number == 0:
		number = len(list)
	case number < 0 || number > len(list):
		return nil, noRequestError(fmt.Sprintf("invalid request number %d: the session has requests 1 to %d%s", number, len(list), s.otherRequests(list)))
	}
	return s.viewAt(ctx, list[number-1], len(list))
}

// otherRequests says how to name the requests of other branches, if there are any.
func (s *Session) otherRequests(list []Request) string {
	all := 0
	for _, r := range s.Records(0) {
		if _, ok := r.Body.(*furl.Exchange); ok {
			all++
		}
	}
	if all <= len(list) {
		return ""
	}
	return " on the current branch; name a request of another branch by the record of its reply"
}

// ViewAtExchange is ViewAtRequest for the request of an exchange, which may be on any
// branch.
func (s *Session) ViewAtExchange(ctx context.Context, exchange furl.Seq) (*RequestView, error) {
	list, err := s.Requests()
	if err != nil {
		return nil, err
	}
	is := func(q Request) bool { return q.Exchange == exchange }
	if i := slices.IndexFunc(list, is); i >= 0 {
		return s.viewAt(ctx, list[i], len(list))
	}
	if list, err = s.requestsTo(exchange); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return nil, fmt.Errorf("record %d of session %s is not an exchange", exchange, s.ID())
	}
	return s.viewAt(ctx, list[i], 0)
}

func (s *Session) viewAt(ctx context.Context, q Request, requests int) (*RequestView, error) {
	out := &RequestView{Request: q, Requests: requests}
	var err error
	var m furl.Model
	var format furl.Format
	s.Internal().Read(func(c *open.Change) {
		m, format = c.Model(q.Model), c.Format()
		out.View, err = viewOf(c, &q, m)
	})
	if err != nil {
		return nil, fmt.Errorf("read request %d of session %s: %w", q.Number, s.ID(), err)
	}
	records := s.Records(0)
	if q.Exchange == 0 || records[q.Exchange-1].Body.(*furl.Exchange).Request.Received == "" {
		return out, nil
	}
	body, origins, err := rebuild.SentBody(records, q.Exchange, s.Internal().Contents(ctx))
	if errors.Is(err, storage.ErrNoContent) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rebuild request %d of session %s: %w", q.Number, s.ID(), err)
	}
	return out, out.read(body, origins, format, s.Internal().All().CounterOf(&m))
}

// viewOf returns the view of a request that follows from the records.
func viewOf(c *open.Change, q *Request, m furl.Model) (*furl.View, error) {
	st, err := furl.Fold(c.Log(), q.Sent)
	if err != nil {
		return nil, err
	}
	if !q.Dry {
		return st.View(m), nil
	}
	all, err := furl.Fold(c.Log(), q.Sent)
	if err == nil {
		err = c.UndoAll(all)
	}
	if err != nil {
		return nil, err
	}
	v := *all.View(m)
	v.State = st // its head is a record
	return &v, nil
}

// read replaces the view by the messages of the body that the provider received. They
// differ from the recorded ones where clients reword what they send, and where a
// changing message is not recorded.
func (v *RequestView) read(body []byte, origins []furl.Seq, format furl.Format, counter furl.Counter) error {
	api := wire.For(format)
	if api == nil {
		return nil
	}
	req, err := api.DecodeRequest(body)
	if err != nil {
		return fmt.Errorf("decode request %d: %w", v.Number, err)
	}
	if t := api.Thread(req); t != nil && t.Previous != "" {
		return nil // the provider has the rest of the conversation
	}
	sent := new(furl.State) // gives the messages their units
	for i := range req.Messages {
		m := &req.Messages[i]
		m.Measure(counter)
		if err := sent.Apply(furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), By: furl.Client, Body: m}); err != nil {
			return fmt.Errorf("read request %d: %w", v.Number, err)
		}
	}
	if len(origins) != len(req.Messages) {
		origins = make([]furl.Seq, len(req.Messages))
	}
	v.Preamble = req.Preamble
	v.Sent, v.View = newViewBlocks(v.View).explain(sent.View(furl.Model{}), origins)
	return nil
}

// viewBlocks finds the blocks of a view by what the model reads in them.
type viewBlocks struct {
	view   *furl.View
	places map[string][]viewPlace // in order; those that were found are removed
}

type viewPlace struct{ message, block int } // indexes

func newViewBlocks(v *furl.View) *viewBlocks {
	f := &viewBlocks{v, make(map[string][]viewPlace)}
	for i := range v.Messages {
		for k := range v.Messages[i].Blocks {
			name := nameOf(&v.Messages[i].Blocks[k])
			f.places[name] = append(f.places[name], viewPlace{i, k})
		}
	}
	return f
}

// nameOf is the same for blocks in which the model reads the same.
func nameOf(b *furl.ShownBlock) string {
	return b.Block.ID + "\x00" + b.Block.Name + "\x00" + b.Words()
}

// find removes the next place of a block. Those in the message of record origin come
// first.
func (f *viewBlocks) find(b *furl.ShownBlock, origin furl.Seq) (viewPlace, bool) {
	name := nameOf(b)
	list := f.places[name]
	if len(list) == 0 {
		return viewPlace{}, false
	}
	at := max(0, slices.IndexFunc(list, func(p viewPlace) bool { return origin != 0 && f.view.Messages[p.message].Seq == origin }))
	place := list[at]
	f.places[name] = slices.Delete(list, at, at+1)
	return place, true
}

// explain returns two views of the messages that the provider received. In both, messages
// name their record. In the second one blocks also name the reductions that show them, as
// in f's view. origins has for each message the record that it is a form of, 0 if unknown.
func (f *viewBlocks) explain(received *furl.View, origins []furl.Seq) (sent, view *furl.View) {
	sent, view = new(furl.View), new(furl.View)
	*sent = *received
	sent.State, sent.Messages = f.view.State, slices.Clone(received.Messages)
	*view = *sent
	view.Messages = slices.Clone(sent.Messages)
	taken := make(map[furl.Seq]bool)
	place := func(i int, of *furl.Shown) {
		for _, m := range []*furl.Shown{&sent.Messages[i], &view.Messages[i]} {
			m.Seq, m.Index, m.By = of.Seq, of.Index, of.By
		}
		taken[of.Seq] = true
	}
	for i := range view.Messages {
		m := &view.Messages[i]
		m.Blocks = slices.Clone(m.Blocks)
		place(i, &furl.Shown{Index: -1})
		for k := range m.Blocks {
			at, ok := f.find(&m.Blocks[k], origins[i])
			if !ok {
				m.Blocks[k].Pos = furl.Pos{} // not recorded in this form
				continue
			}
			of := &f.view.Messages[at.message]
			m.Blocks[k] = of.Blocks[at.block]
			if m.Seq == 0 {
				place(i, of)
			}
		}
	}
	for i := range view.Messages { // messages of which every block differs
		at, ok := f.view.State.Find(origins[i])
		if m := &view.Messages[i]; !ok || m.Seq != 0 || m.By != 0 || taken[origins[i]] {
			continue
		} else if _, recorded := f.view.State.Message(at); recorded.Role == m.Msg.Role {
			place(i, &furl.Shown{Seq: origins[i], Index: at})
		}
	}
	return sent, view
}
