package session

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

// ReceivedBody rebuilds the body of a recorded request as the client sent it, byte for
// byte except for values outside the messages that may be credentials or name a user:
// these are not recorded, and "[removed by furl]" is in their place. The record seq is
// its exchange. It is an error if the exchange has no bodies (Exchange.Request). Parts
// above storage.MaxContent were not stored, and a body that has one is an error
// wrapping storage.ErrNoContent.
func (s *Session) ReceivedBody(ctx context.Context, seq furl.Seq) ([]byte, error) {
	return s.requestBody(ctx, seq, false)
}

// SentBody is ReceivedBody for the body that furl sent in its place.
func (s *Session) SentBody(ctx context.Context, seq furl.Seq) ([]byte, error) {
	return s.requestBody(ctx, seq, true)
}

func (s *Session) requestBody(ctx context.Context, seq furl.Seq, sent bool) ([]byte, error) {
	records := s.Records(0)
	fail := func(err error) error {
		return fmt.Errorf("rebuild the request of record %d of session %s: %w", seq, s.key.Session, err)
	}
	if seq == 0 || seq > furl.Seq(len(records)) {
		return nil, fail(fmt.Errorf("the session has %d records", len(records)))
	}
	if _, ok := records[seq-1].Body.(*furl.Exchange); !ok {
		return nil, fail(fmt.Errorf("the record is not an exchange; %s", exchangesNear(records, seq)))
	}
	if x := records[seq-1].Body.(*furl.Exchange); x.Request == (furl.RequestParts{}) && len(s.Meta().Redactions) > 0 {
		return nil, fail(fmt.Errorf("the session was redacted, which removed the bodies of its requests: %w", storage.ErrNoContent))
	}
	body, err := rebuild.Body(records, seq, sent, s.contents(ctx))
	if err != nil {
		return nil, fail(err)
	}
	return body, nil
}

// exchangesNear names the exchanges before and after a record.
func exchangesNear(records []furl.Record, seq furl.Seq) string {
	before, after := furl.Seq(0), furl.Seq(0)
	for i := range records {
		if _, ok := records[i].Body.(*furl.Exchange); !ok {
			continue
		}
		if records[i].Seq > seq {
			after = records[i].Seq
			break
		}
		before = records[i].Seq
	}
	switch {
	case before == 0 && after == 0:
		return "the session has none"
	case after == 0:
		return fmt.Sprintf("the last one is %d", before)
	case before == 0:
		return fmt.Sprintf("the first one is %d", after)
	}
	return fmt.Sprintf("the nearest are %d and %d", before, after)
}

// contents reads the contents of the session.
func (s *Session) contents(ctx context.Context) rebuild.Contents {
	return func(d furl.Digest) ([]byte, error) {
		store, ok := s.all.store.(storage.ContentStore)
		if !ok {
			return nil, fmt.Errorf("this store keeps no contents: %w", storage.ErrNoContent)
		}
		return store.Content(ctx, s.key, d)
	}
}

// Contents returns the contents that the session's records up to last refer to,
// each once. Those that the store does not have are missing.
func (s *Session) Contents(ctx context.Context, last furl.Seq) ([][]byte, error) {
	records := s.Records(0)
	list, err := rebuild.ContentsOf(records[:min(int(last), len(records))], s.contents(ctx))
	if err != nil {
		return nil, fmt.Errorf("read what session %s refers to: %w", s.key.Session, err)
	}
	return list, nil
}

// partsOf cuts the bodies of a request into parts, nil if they cannot be recorded.
// sent is nil if furl sent the client's body.
func (s *Session) partsOf(f *Fit) (received, sent *rebuild.Parts) {
	req := f.Received
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
	received = rebuild.Cut(req.Body, api.List(), elements, nil)
	if received == nil || bytes.Equal(req.Body, f.Sent) {
		return received, nil
	}
	if sent = rebuild.Cut(f.Sent, api.List(), nil, received.Separator); sent == nil {
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
func (s *Session) describeRequest(ctx context.Context, ex *furl.Exchange, f *Fit) {
	// The client's messages still have what was redacted, and their differences from
	// the recorded ones would bring it back.
	if len(s.meta.Redactions) > 0 {
		return
	}
	received, sent := s.partsOf(f)
	if received == nil {
		return
	}
	at := furl.Seq(s.log.Len() + 1)
	request, contents, lists := rebuild.Describe(s.log.Records(0), at, s.listsBefore(ctx), received, sent)
	ex.Request = request
	s.newContents = append(s.newContents, contents...)
	s.lists = slices.Insert(s.lists, 0, knownLists{lists, ex})
	s.lists = s.lists[:min(len(s.lists), maxLists)]
}

// maxOlder is how many exchanges of other processes may be between an exchange and the
// one that its description builds on. The description names the messages since then.
const maxOlder = 16

// listsBefore returns the lists of a recent exchange on the path, nil if there are none.
// That is the newest one of which this process has the lists. Only if there is none, lists are
// rebuilt from the log.
func (s *Session) listsBefore(ctx context.Context) *rebuild.Lists {
	newest, seen := furl.Seq(0), 0
	for at := s.log.Head(); at != 0 && seen < maxOlder; at = s.log.At(at).Parent {
		x, ok := s.log.At(at).Body.(*furl.Exchange)
		if !ok || x.Request.Received == "" {
			continue
		}
		for i, l := range s.lists {
			if l.At == at && l.of == x {
				s.lists = slices.Insert(slices.Delete(s.lists, i, i+1), 0, l)
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
	lists, err := rebuild.Load(s.log.Records(0), newest, s.contents(ctx))
	if err != nil {
		// Without them the description is longer.
		s.all.log.Debug("the lists of a request could not be rebuilt", "session", s.key.Session, "record", newest, "error", err)
		return nil
	}
	return lists
}
