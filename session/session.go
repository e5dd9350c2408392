package session

import (
	"context"
	"errors"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// Session is one open session. It is safe for concurrent use, also by several
// processes on one store: after a conflict, the other process's records are read and
// the change is made again on top of them. While a session is in memory, Open and Find
// return the same pointer.
type Session open.Session

// Internal returns the open session for other packages of furl: it is read and changed
// under one lock. FromInternal is the way back.
func (s *Session) Internal() *open.Session { return (*open.Session)(s) }

// FromInternal returns the session of an open session; see Session.Internal. It is for
// other packages of furl.
func FromInternal(s *open.Session) *Session { return (*Session)(s) }

func (s *Session) store() storage.Store { return s.Internal().All().Store() }

// ID returns the id of the session.
func (s *Session) ID() furl.SessionID { return s.Internal().ID() }

// Meta returns the metadata of the session.
func (s *Session) Meta() storage.Meta { return s.Internal().Meta() }

// Info returns the store's description of the session as of the last read, with the
// current number of records.
func (s *Session) Info() storage.SessionInfo { return s.Internal().Info() }

// Head returns the last record of the current path.
func (s *Session) Head() furl.Seq { return s.Internal().Head() }

// Records returns the records with numbers above after, in order.
func (s *Session) Records(after furl.Seq) []furl.Record { return s.Internal().Records(after) }

// Append appends messages after the head, all or none, and returns their records.
// The session keeps the messages; they must not be changed afterwards. For a user
// message while a call has no result, the error wraps furl.ErrOpenCall. Use
// AppendAfter to repeat an append that may have succeeded.
func (s *Session) Append(ctx context.Context, msgs ...*furl.Message) ([]furl.Record, error) {
	return s.appendMessages(ctx, nil, msgs)
}

// AppendAfter appends messages after the record after, which must be the head;
// otherwise the error wraps furl.ErrConflict. If these messages already follow the
// record on the path, AppendAfter returns their records and appends nothing, so it
// is safe to repeat.
func (s *Session) AppendAfter(ctx context.Context, after furl.Seq, msgs ...*furl.Message) ([]furl.Record, error) {
	return s.appendMessages(ctx, &after, msgs)
}

func (s *Session) appendMessages(ctx context.Context, after *furl.Seq, msgs []*furl.Message) ([]furl.Record, error) {
	var records []furl.Record
	err := s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error {
		records = records[:0]
		at := c.Log().Head()
		if after != nil {
			at = *after
		}
		counter := c.SessionCounter()
		for _, m := range msgs {
			if at == c.Log().Head() {
				r, err := c.AppendMessage(m, counter)
				if err != nil {
					return err
				}
				records, at = append(records, r), r.Seq
				continue
			}
			r, err := c.AppendMessageAfter(at, m)
			if err != nil {
				return err
			}
			records, at = append(records, r), r.Seq
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// Model returns the description of a model, by its name in requests, for this session.
// All that furl plans, shows and counts for a session uses its Window. It is the first
// of these that is known:
//
//  1. the session's setting context_limit
//  2. Options.Window, the flag --window
//  3. the window that the configuration sets for the model (policy.Set.Window)
//  4. what is recorded: with Options.LastWindow the window of the latest request, else
//     the one that an imported recording names (storage.Meta.Windows)
//  5. the limit that the provider reported when it refused a prompt
//  6. the one that a catalog file of the user sets (catalog.Catalog.SetByUser)
//  7. the one that the provider's models API reports (Options.Reported)
//  8. the built-in catalog's
//  9. the smallest window of the newest models of the same family, if the catalog lacks
//     the model (catalog.Catalog.Assume); Model.WindowAssumed is then set
//
// A limit of 5 also lowers the windows of 2 to 4 and 6 to 9, because the provider would
// refuse longer prompts again. A prompt that the provider has answered raises the windows
// of an import and of 6 to 9 to its size. Without a family, the window is unknown, and
// nothing is reduced.
func (s *Session) Model(name string) (m furl.Model) {
	s.Internal().Read(func(c *open.Change) { m = c.Model(name) })
	return m
}

// View returns what a model would see now, without a new plan. model is its name in
// requests. See policy.Fit.View for the validity of the result.
func (s *Session) View(model string) (v *furl.View) {
	s.Internal().Read(func(c *open.Change) { v = c.Log().State().View(c.Model(model)) })
	return v
}

// Fit makes the session fit a model's context window by its policy: it plans,
// records the reductions, and returns the view. The preamble is what is sent in
// addition to the messages; instructions as text
// blocks, and each tool as an opaque block with its JSON as the text. It counts and
// is never reduced.
//
// If the policy asks a model for a summary, the session can be used while that is
// written. The summary is discarded if it no longer applies to the session. With the
// setting ask_first, Fit asks no model; prepare summaries with SummaryStage and
// PrepareSummary.
func (s *Session) Fit(ctx context.Context, model string, preamble ...furl.Block) (*policy.Fit, error) {
	in := open.Prompt{Model: model, Preamble: preamble, Digest: open.PreambleDigest(preamble), HourCache: protocol.HourNever}
	d, err := s.Internal().Prepare(ctx, open.Preparation{Prompt: func(*open.Change) open.Prompt { return in }})
	if err != nil {
		return nil, err
	}
	if err := d.Commit(ctx, open.OnDisk); err != nil {
		return nil, err
	}
	return d.Fit, nil
}

// Observe records the result of a request: an exchange with its usage, and the
// messages of the reply. If the head has changed since the request, it rewinds to
// the head that the request was sent for. If the log has the reply already, because
// another process was faster with the client's next request, only the exchange is
// recorded, and the conversation continues where it was. It sets sent.Account. When Observe returns, the records survive
// the end of the process, but not always a power loss (storage.EarlyAppender).
func (s *Session) Observe(ctx context.Context, sent *policy.Fit, reply *protocol.Reply) error {
	if reply == nil {
		return errors.New("observe reply: reply is nil")
	}
	return s.Internal().Observe(ctx, sent, open.Bodies{}, reply, nil)
}

// UnknownTypes returns the types of blocks and items on the session's current path that furl
// does not know. Their steps are never hidden.
func (s *Session) UnknownTypes() (types []string) {
	s.Internal().Read(func(c *open.Change) { types = slices.Clone(open.UnknownTypesOf(c.Log().State())) })
	return types
}
