package session

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// Check reads the session from the store again and checks the invariants of package
// furl: the records of every branch are consecutive and fold; digests and chains
// match the messages, and messages match their bytes; each view has every call with
// its result; undoing all reductions shows the transcript as recorded; and the
// records in memory equal the stored ones. It returns the problems found, and an
// error only if it cannot read the session.
func (s *Session) Check(ctx context.Context) ([]storage.Problem, error) {
	var records []furl.Record
	for r, err := range s.store().Read(ctx, s.Internal().Key(), 0) {
		if err != nil {
			return nil, fmt.Errorf("check session %s: %w", s.ID(), err)
		}
		open.Judge(r)
		records = append(records, r)
	}
	meta := s.Meta()
	c := &checker{key: s.Internal().Key(), model: s.Model(meta.Model), meta: meta}
	held := s.Records(0)
	if len(held) > len(records) || !sameRecords(held, records[:len(held)]) {
		c.add(0, "records in memory differ from the store")
	}
	log := furl.NewLog()
	if err := log.Load(records); err != nil {
		c.add(0, "records do not fold: %v", err)
		return c.found, nil
	}
	c.log = log
	for _, r := range records {
		if err := ctx.Err(); err != nil {
			return c.found, err
		}
		c.record(r)
	}
	for _, head := range leaves(log) {
		if err := ctx.Err(); err != nil {
			return c.found, err
		}
		c.branch(head)
	}
	return c.found, nil
}

// checker collects the problems of a session.
type checker struct {
	key   furl.SessionKey
	model furl.Model
	meta  storage.Meta
	log   *furl.Log
	found []storage.Problem
}

func (c *checker) add(seq furl.Seq, format string, args ...any) {
	c.found = append(c.found, storage.Problem{Session: c.key, Seq: seq, Text: fmt.Sprintf(format, args...)})
}

// record checks one record by itself and against its parent.
func (c *checker) record(r furl.Record) {
	switch b := r.Body.(type) {
	case *furl.Message:
		if c.meta.Redacted(r.Seq) {
			return // its digests are those of the original
		}
		var before furl.Digest
		for p := r.Parent; p != 0; p = c.log.At(p).Parent {
			if _, ok := c.log.At(p).Body.(*furl.Message); ok {
				before = c.log.At(p).Chain
				break
			}
		}
		if !r.Chain.IsZero() && b.Extend(before) != r.Chain && c.chain(r) != r.Chain {
			c.add(r.Seq, "chain of digests does not match the messages")
		}
		own := *b
		own.Seal()
		if !b.Digest.IsZero() && own.Digest != b.Digest {
			c.add(r.Seq, "digest does not match the message")
		}
		c.bytes(r.Seq, b)
	case *furl.Reduction:
		if b.Before != 0 && b.After > b.Before && r.By == furl.Furl {
			c.add(r.Seq, "reduction increased the context from %d to %d tokens", b.Before, b.After)
		}
	case *furl.Head:
		if b.From >= r.Seq {
			c.add(r.Seq, "rewind from record %d, which is not an earlier record", b.From)
		}
	}
}

// chain computes the chain of a message from its whole path. In some formats a
// message continues the text before a call that furl answered.
func (c *checker) chain(r furl.Record) furl.Digest {
	st, err := furl.Fold(c.log, r.Parent)
	if err != nil {
		return furl.Digest{}
	}
	r.Chain = furl.Digest{}
	if st.Apply(r) != nil {
		return furl.Digest{}
	}
	return st.Chain(st.Len())
}

// bytes checks that a message matches its bytes.
func (c *checker) bytes(seq furl.Seq, m *furl.Message) {
	codec := wire.For(m.Format)
	if codec == nil || m.Raw == nil {
		return
	}
	again, err := codec.DecodeMessage(m.Raw)
	if err == nil && again.Role != m.Role && len(again.Blocks) > 0 && again.Blocks[0].Fixed {
		again.Role = m.Role // an older version took it for the assistant's
		again.Seal()
	}
	switch {
	case err != nil:
		c.add(seq, "cannot decode the bytes of the message: %v", err)
	case again.Digest != m.Digest && !m.Digest.IsZero():
		c.add(seq, "bytes of the message do not match its blocks")
	}
}

// branch checks the views of a path.
func (c *checker) branch(head furl.Seq) {
	st, err := furl.Fold(c.log, head)
	if err != nil {
		c.add(head, "branch does not fold: %v", err)
		return
	}
	c.pairs(head, st)
	next := furl.Seq(c.log.Len())
	var active []furl.Seq
	for red := range st.Reductions() {
		if !red.Undone {
			active = append(active, red.Seq)
		}
	}
	for _, seq := range active {
		next++
		if err := st.Apply(furl.Record{Seq: next, Parent: st.Head(), Body: &furl.Restoration{Of: seq}}); err != nil {
			c.add(seq, "reduction cannot be undone: %v", err)
			return
		}
	}
	v := st.View(furl.Model{})
	if len(v.Messages) != st.Len() {
		c.add(head, "with all reductions undone, the view has %d of %d messages", len(v.Messages), st.Len())
		return
	}
	for i := range v.Messages {
		if sh := &v.Messages[i]; sh.Index != i || !sh.AsRecorded() {
			c.add(sh.Seq, "with all reductions undone, the message is not shown as recorded")
			return
		}
	}
}

// pairs checks that a view shows both or neither of each call and its result, if
// both are on the path.
func (c *checker) pairs(head furl.Seq, st *furl.State) {
	calls, results := ids(st.View(c.model))
	whole := make(map[string]int)
	for i := range st.Len() {
		_, m := st.Message(i)
		for k := range m.Blocks {
			switch m.Blocks[k].Kind {
			case furl.KindCall:
				whole[m.Blocks[k].ID] |= 1
			case furl.KindResult:
				whole[m.Blocks[k].ID] |= 2
			}
		}
	}
	for id, both := range whole {
		if both == 3 && calls[id] != results[id] {
			c.add(head, "view has only one of call %s and its result", id)
		}
	}
}

func ids(v *furl.View) (calls, results map[string]bool) {
	calls, results = make(map[string]bool), make(map[string]bool)
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			switch b := v.Messages[i].Blocks[j].Block; b.Kind {
			case furl.KindCall:
				calls[b.ID] = true
			case furl.KindResult:
				results[b.ID] = true
			}
		}
	}
	return calls, results
}

// leaves returns the last records of all branches.
func leaves(log *furl.Log) []furl.Seq {
	hasChild := make([]bool, log.Len()+1)
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Head); !ok {
			hasChild[r.Parent] = true
		}
	}
	var out []furl.Seq
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Head); !ok && !hasChild[r.Seq] {
			out = append(out, r.Seq)
		}
	}
	return out
}
