package session

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/storage"
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
		return fmt.Errorf("rebuild the request of record %d of session %s: %w", seq, s.ID(), err)
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
	body, err := rebuild.Body(records, seq, sent, s.Internal().Contents(ctx))
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

// Contents returns the contents that the session's records up to last refer to,
// each once. Those that the store does not have are missing.
func (s *Session) Contents(ctx context.Context, last furl.Seq) ([][]byte, error) {
	records := s.Records(0)
	list, err := rebuild.ContentsOf(records[:min(int(last), len(records))], s.Internal().Contents(ctx))
	if err != nil {
		return nil, fmt.Errorf("read what session %s refers to: %w", s.ID(), err)
	}
	return list, nil
}
