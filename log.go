package furl

import (
	"fmt"
	"time"
)

// Log is one session's records in memory: append-only, a tree by Parent. The
// zero value is an empty log. A Log is not safe for concurrent use.
type Log struct {
	records []Record
	head    Seq
}

// Len is the number of records.
func (l *Log) Len() int { return len(l.records) }

// At returns the record seq, which must exist.
func (l *Log) At(seq Seq) Record { return l.records[seq-1] }

// Head is the record the conversation goes on from; 0 when it starts anew.
func (l *Log) Head() Seq { return l.head }

// Append adds a record after the record "after", which must be the head: an
// append is a compare-and-swap and returns ErrConflict otherwise. Repeating an
// append that already follows "after" on the current path adds nothing and
// returns the record that is there.
func (l *Log) Append(after Seq, at time.Time, by Actor, body Body) (Record, error) {
	if after != l.head {
		if r, ok := l.follows(after, body); ok {
			return r, nil
		}
		return Record{}, fmt.Errorf("append after %d, head is %d: %w", after, l.head, ErrConflict)
	}
	r := Record{Seq: Seq(len(l.records) + 1), Parent: after, At: at, By: by, Body: body}
	l.records = append(l.records, r)
	l.head = r.Seq
	return r, nil
}

// Rewind makes the conversation go on from the record to (0: a new root).
// What was after it stays in the log, on a branch of its own. Package policy
// and the session layer rewind to step boundaries; see State.Boundary.
func (l *Log) Rewind(to Seq, at time.Time, by Actor) (Record, error) {
	if int(to) > len(l.records) {
		return Record{}, fmt.Errorf("rewind to %d: %w", to, ErrNotOnPath)
	}
	r := Record{Seq: Seq(len(l.records) + 1), Parent: to, At: at, By: by, Body: &Head{From: l.head}}
	l.records = append(l.records, r)
	l.head = to
	return r, nil
}

// follows finds the record right after "after" on the current path, if its
// body is the same.
func (l *Log) follows(after Seq, body Body) (Record, bool) {
	for seq := l.head; seq != 0 && seq > after; {
		r := l.records[seq-1]
		if r.Parent == after {
			return r, sameBody(r.Body, body)
		}
		seq = r.Parent
	}
	return Record{}, false
}

// Path returns the records from the root to seq.
func (l *Log) Path(seq Seq) []Record {
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
