package furl

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Log is a session's records in memory, a tree by Parent, with the State of its
// head. It is not safe for concurrent use.
type Log struct {
	records []Record
	head    Seq
	state   *State // of head
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{state: new(State)} }

// Len is the number of records.
func (l *Log) Len() int { return len(l.records) }

// At returns the record seq, which must exist.
func (l *Log) At(seq Seq) Record { return l.records[seq-1] }

// Head returns the current record; 0 at the beginning.
func (l *Log) Head() Seq { return l.head }

// State returns the state of the head. It changes with the log; Fold returns an
// independent one.
func (l *Log) State() *State { return l.state }

// Append adds a record after the record "after", which must be the head, or the
// error wraps ErrConflict. Repeating an append that already follows "after" on
// the current path returns the existing record. A user message after a call
// without result is ErrOpenCall, a reduction or restoration of something not on
// the path ErrNotOnPath. After an error the log is unchanged.
func (l *Log) Append(after Seq, at time.Time, by Actor, body Body) (Record, error) {
	if after != l.head {
		if r, ok := l.follows(after, body); ok {
			return r, nil
		}
		return Record{}, fmt.Errorf("append after %d, head is %d: %w", after, l.head, ErrConflict)
	}
	if m, ok := body.(*Message); ok {
		m = l.state.withCallIDs(m, Seq(len(l.records)+1))
		body = m
		if err := l.state.mayFollow(m); err != nil {
			return Record{}, fmt.Errorf("append after %d: %w", after, err)
		}
	}
	body, err := l.resolved(body, after)
	if err != nil {
		return Record{}, fmt.Errorf("append after %d: %w", after, err)
	}
	r := Record{Seq: Seq(len(l.records) + 1), Parent: after, At: at, By: by, Body: body}
	if m, ok := body.(*Message); ok {
		r.Chain = l.state.extend(m)
	}
	if err := l.state.Apply(r); err != nil {
		return Record{}, err
	}
	l.records = append(l.records, r)
	l.head = r.Seq
	return r, nil
}

// Load adds records read from a store, in order, after those the log has. A
// record that does not fit is an error wrapping ErrDamaged and leaves the log
// unchanged.
func (l *Log) Load(records []Record) error {
	had, head, rewound := len(l.records), l.head, false
	for i, r := range records {
		if want := Seq(had + i + 1); r.Seq != want || r.Parent >= r.Seq {
			return fmt.Errorf("load record %d with parent %d where %d should be: %w", r.Seq, r.Parent, want, ErrDamaged)
		}
		if _, ok := r.Body.(*Head); ok {
			head, rewound = r.Parent, true
			continue
		}
		if r.Parent != head {
			return fmt.Errorf("load record %d: its parent is %d, the head is %d: %w", r.Seq, r.Parent, head, ErrDamaged)
		}
		head = r.Seq
	}
	state, err := l.state, l.keep(records)
	switch {
	case err != nil:
	case rewound:
		state, err = Fold(l, head)
	default:
		for i := had; i < len(l.records) && err == nil; i++ {
			err = state.Apply(l.records[i])
		}
	}
	if err != nil {
		l.records = slices.Delete(l.records, had, len(l.records))
		if !rewound { // some were applied
			l.state, _ = Fold(l, l.head)
		}
		return fmt.Errorf("load: %w: %w", ErrDamaged, err)
	}
	l.head, l.state = head, state
	return nil
}

// keep adds records without folding them.
func (l *Log) keep(records []Record) error {
	l.records = slices.Grow(l.records, len(records))
	for _, r := range records {
		body, err := l.resolved(r.Body, r.Parent)
		if err != nil {
			return fmt.Errorf("record %d: %w", r.Seq, err)
		}
		r.Body = body
		l.records = append(l.records, r)
	}
	return nil
}

// Draft returns a copy that can be appended to without changing l, at the cost
// of what is appended. It is valid until l changes. To keep its records, Load
// them into l.
func (l *Log) Draft() *Log { return &Log{records: l.records, head: l.head, state: l.state.draft()} }

// Records gives the records above after, in the order they were appended.
func (l *Log) Records(after Seq) []Record {
	return slices.Clip(l.records[min(after, Seq(len(l.records))):])
}

// Rewind makes a record the head, or the step boundary before it
// (State.Boundary); 0 starts a new root. Where a client or the provider goes on, the
// boundary may be a record at which the provider has still to answer a call that
// it runs (State.AwaitsProvider). The Parent of the returned Head record is
// the new head. Later records stay on a branch to which a Rewind can return.
func (l *Log) Rewind(to Seq, at time.Time, by Actor) (Record, error) {
	if to > Seq(len(l.records)) {
		return Record{}, fmt.Errorf("rewind to %d: %w", to, ErrNotOnPath)
	}
	if to != 0 {
		if _, ok := l.records[to-1].Body.(*Head); ok {
			to = l.records[to-1].Parent
		}
	}
	state, err := Fold(l, to)
	if err != nil {
		return Record{}, err
	}
	if boundary := state.boundary(to, by == Person || by == Import); boundary != to {
		to = boundary
		if state, err = Fold(l, to); err != nil {
			return Record{}, err
		}
	}
	r := Record{Seq: Seq(len(l.records) + 1), Parent: to, At: at, By: by, Body: &Head{From: l.head}}
	l.records = append(l.records, r)
	l.head, l.state = to, state
	return r, nil
}

// follows finds the record right after "after" on the current path, if its
// body is the same.
func (l *Log) follows(after Seq, body Body) (Record, bool) {
	for seq := l.head; seq > after; {
		r := l.records[seq-1]
		if r.Parent == after {
			return r, sameBody(r.Body, body)
		}
		seq = r.Parent
	}
	return Record{}, false
}

// Path returns the records from the root to seq, none if there is no such
// record.
func (l *Log) Path(seq Seq) []Record {
	if seq > Seq(len(l.records)) {
		return nil
	}
	n := 0
	for s := seq; s != 0; s = l.records[s-1].Parent {
		n++
	}
	path := make([]Record, n)
	for s := seq; s != 0; s = l.records[s-1].Parent {
		n--
		path[n] = l.records[s-1]
	}
	return path
}

// mayFollow refuses words of the user while a call waits for its result.
func (s *State) mayFollow(m *Message) error {
	if m.Role != RoleUser {
		return nil
	}
	client := slices.IndexFunc(s.open, func(o openCall) bool { return !o.hosted })
	if client < 0 {
		return nil
	}
	for i := range m.Blocks {
		if m.Blocks[i].Kind == KindResult || m.Blocks[i].Fixed { // which may be a result of a new kind
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrOpenCall, s.open[client].id)
}

// sameBody reports whether two bodies say the same. Messages compare by their
// bytes on the wire where they have them: two results of one call differ.
func sameBody(a, b Body) bool {
	if x, ok := a.(*Takeover); ok {
		y, ok := b.(*Takeover)
		return ok && x.Equal(y)
	}
	x, ok1 := a.(*Message)
	y, ok2 := b.(*Message)
	if ok1 != ok2 {
		return false
	}
	if !ok1 {
		return reflect.DeepEqual(a, b)
	}
	if x.Raw != nil || y.Raw != nil {
		return bytes.Equal(x.Raw, y.Raw)
	}
	return x.Role == y.Role && reflect.DeepEqual(x.Blocks, y.Blocks)
}
