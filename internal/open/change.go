package open

import (
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/storage"
)

// Change is a change of a session in progress. What it appends and sets is in neither
// the session nor the store until it is committed, so nothing has to be rolled back when
// the store or the provider refuses it, and no method of the session sees it. The session
// is locked while one of its methods runs. Its results are read-only and valid until the
// function that received the change returns; records stay valid.
//
// A query of a session uses a change that is not committed, see Session.current.
type Change struct {
	s   *Session
	all *shared
	key furl.SessionKey

	log             *furl.Log      // nil once the change is made
	records         []furl.Record  // that were appended, once it is made
	sizes           *account.Sizer // after the records of log
	newMeta         *storage.Meta  // nil: unchanged
	contents        [][]byte       // that the new records refer to
	at              time.Time      // of the records; zero: by the clock
	summaryRecorded bool           // the records include the ready summary
	repair          *policy.Repair // that the records include, nil for none

	staged   *stagedAppend // of this change; nil: none
	base     int           // number of records of the session
	baseMeta storage.Meta  // of the session; only if the change can be committed
}

var _ *Change = &Change{}

// try makes a change without committing it. The session is locked.
func (s *Session) try(f func(c *Change) error) (*Change, error) {
	c := s.current()
	sizes := s.sizes
	c.log, c.sizes, c.baseMeta = s.log.Draft(), &sizes, s.meta.Clone()
	if err := f(c); err != nil {
		return nil, err
	}
	c.records = slices.Clone(c.log.Records(furl.Seq(c.base)))
	c.log = nil // it shares memory with the log of the session
	return c, nil
}

// current returns the session as it is. Nothing may be appended to it. The session is
// locked.
func (s *Session) current() *Change {
	return &Change{s: s, all: s.all, key: s.key, log: s.log, sizes: &s.sizes, base: s.log.Len()}
}

// isCurrent reports whether the session has not changed since the change began.
func (c *Change) isCurrent() bool {
	return c.base == c.s.log.Len() && (c.newMeta == nil || SameMeta(c.baseMeta, c.s.meta))
}

// now returns the time of the change's records.
func (c *Change) now() time.Time {
	if !c.at.IsZero() {
		return c.at
	}
	return c.all.o.Now()
}

// Log returns the session's log with the appended records. It is read-only.
func (c *Change) Log() *furl.Log { return c.log }

// Meta returns the session's metadata. Clone it before changing Settings.
func (c *Change) Meta() storage.Meta {
	if c.newMeta != nil {
		return *c.newMeta
	}
	return c.s.meta
}

// SetMeta changes the session's metadata.
func (c *Change) SetMeta(m storage.Meta) { c.newMeta = &m }

// Append appends a record after the head.
func (c *Change) Append(by furl.Actor, body furl.Body) (furl.Record, error) {
	r, err := c.log.Append(c.log.Head(), c.now(), by, body)
	if err == nil {
		c.sizes.RecordAppended(r, c.log, c.models())
	}
	return r, err
}

// AppendMessage appends a message and counts its tokens. The log keeps m.
func (c *Change) AppendMessage(m *furl.Message, counter furl.Counter) (furl.Record, error) {
	m.Measure(counter)
	if m.Digest.IsZero() {
		m.Seal()
	}
	if form := c.redactedForm(m); form != nil {
		return c.AppendRedacted(m, form)
	}
	return c.Append(actorOf(m), m)
}

// AppendMessageAfter appends a message after a record, which must be the head, or else be
// followed by the same message on the path, which is then returned; see furl.Log.Append.
func (c *Change) AppendMessageAfter(after furl.Seq, m *furl.Message) (furl.Record, error) {
	return c.log.Append(after, c.now(), actorOf(m), m)
}

// Load appends copies of records of another log, and the contents that they refer to.
func (c *Change) Load(records []furl.Record, contents [][]byte) error {
	c.contents = append(c.contents, contents...)
	return c.log.Load(records)
}

// actorOf returns who appends a message.
func actorOf(m *furl.Message) furl.Actor {
	if m.Role == furl.RoleAssistant {
		return furl.Upstream
	}
	return furl.Client
}

// Rewind continues the conversation from an earlier record; see furl.Log.
func (c *Change) Rewind(to furl.Seq, by furl.Actor) (furl.Record, error) {
	return c.log.Rewind(to, c.now(), by)
}

// Measure sets the sizes of the context before and after a reduction that no
// policy has planned.
func (c *Change) Measure(red *furl.Reduction) {
	model := c.Meta().Model
	if model == "" {
		return
	}
	b, before, _ := c.BudgetFor(Prompt{Model: model})
	if st, err := c.log.State().With(red); err == nil {
		red.Before, red.After, red.Scale = b.Size, b.After(before, st.View(b.Model)).Size, b.Scale
	}
}

// Counter returns the token counter of a model.
func (c *Change) Counter(model string) furl.Counter {
	m := c.all.Model(model, c.Format())
	return c.all.CounterOf(&m)
}

// models describes models as the sizer of the session needs them.
func (c *Change) models() account.ModelLookup {
	format := c.Format()
	return func(name string) furl.Model { return c.all.Model(name, format) }
}
