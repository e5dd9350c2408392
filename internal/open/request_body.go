package open

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// Contents reads the contents of the session.
func (s *Session) Contents(ctx context.Context) rebuild.Contents {
	return func(d furl.Digest) ([]byte, error) {
		store, ok := s.all.store.(storage.ContentStore)
		if !ok {
			return nil, fmt.Errorf("this store keeps no contents: %w", storage.ErrNoContent)
		}
		return store.Content(ctx, s.key, d)
	}
}

// partsOf cuts the bodies of a request into parts, nil if they cannot be recorded.
// sent is nil if furl sent the client's body.
func (s *Session) partsOf(b Bodies) (received, sent *rebuild.Parts) {
	req := b.Received
	if req == nil {
		return nil, nil
	}
	api := wire.For(req.Format)
	if _, ok := s.all.store.(storage.ContentStore); !ok || api == nil {
		return nil, nil
	}
	elements := make([]rawjson.Span, len(req.Messages))
	end := 0
	for i := range elements {
		e := rawjson.Span{Start: req.Offsets[i], End: req.Offsets[i] + len(req.Messages[i].Raw)}
		if e.Start < end || e.Len() == 0 || e.End > len(req.Body) {
			return nil, nil // not a usual list
		}
		elements[i], end = e, e.End
	}
	if received = rebuild.Cut(req.Body, api.List(), elements, nil); received == nil {
		return nil, nil
	}
	received.Sums = req.Sums
	if bytes.Equal(req.Body, b.Sent) {
		return received, nil
	}
	if sent = rebuild.Cut(b.Sent, api.List(), nil, received.Separator); sent == nil {
		return nil, nil
	}
	return received, sent
}

// maxLists is how many exchanges have their lists in memory: as many branches
// can go on without reading them from the log.
const maxLists = 4

// knownLists are the lists of a recorded exchange.
type knownLists struct {
	*rebuild.Lists
	of *furl.Exchange // in the log, unless it was not committed
}

// describeRequest describes the bodies of a request for an exchange that is to
// be appended next. The session is locked.
func (c *Change) describeRequest(ctx context.Context, ex *furl.Exchange, b Bodies) {
	// The client's messages still have what was redacted, and their differences from
	// the recorded ones would bring it back.
	if len(c.Meta().Redactions) > 0 {
		return
	}
	received, sent := c.s.partsOf(b)
	if received == nil {
		return
	}
	at := furl.Seq(c.log.Len() + 1)
	request, contents, lists := rebuild.Describe(c.log.Records(0), at, c.listsBefore(ctx), received, sent)
	ex.Request = request
	c.contents = append(c.contents, contents...)
	c.s.lists = slices.Insert(c.s.lists, 0, knownLists{lists, ex})
	c.s.lists = c.s.lists[:min(len(c.s.lists), maxLists)]
}

// maxOlder is how many exchanges of other processes may be between an exchange and the
// one that its description builds on. The description names the messages since then.
const maxOlder = 16

// listsBefore returns the lists of a recent exchange on the path, nil if there are none.
// That is the newest one of which this process has the lists. Only if there is none, lists are
// rebuilt from the log.
func (c *Change) listsBefore(ctx context.Context) *rebuild.Lists {
	newest, seen := furl.Seq(0), 0
	for at := c.log.Head(); at != 0 && seen < maxOlder; at = c.log.At(at).Parent {
		x, ok := c.log.At(at).Body.(*furl.Exchange)
		if !ok || x.Request.Received == "" {
			continue
		}
		for i, l := range c.s.lists {
			if l.At == at && l.of == x {
				c.s.lists = slices.Insert(slices.Delete(c.s.lists, i, i+1), 0, l)
				return l.Lists
			}
		}
		if seen++; newest == 0 {
			newest = at
		}
	}
	if newest == 0 {
		return nil
	}
	lists, err := rebuild.Load(c.log.Records(0), newest, c.s.Contents(ctx))
	if err != nil {
		// Without them the description is longer.
		c.all.log.Debug("the lists of a request could not be rebuilt", "session", c.key.Session, "record", newest, "error", err)
		return nil
	}
	return lists
}
