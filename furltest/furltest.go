// Package furltest helps to test furl's stores and programs that use them.
// TestStore checks that a store keeps all guarantees of the interfaces of
// package furl. Session generates realistic sessions.
//
//	func TestConformance(t *testing.T) {
//		furltest.TestStore(t, func(t testing.TB) storage.Store {
//			s, err := mystore.Open(t.TempDir())
//			if err != nil {
//				t.Fatal(err)
//			}
//			return s
//		}, nil)
//	}
package furltest

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Options for TestStore.
type Options struct {
	// Reopen closes a store and opens it again with its data, as another
	// process would. If nil, the store does not outlive its process, and
	// tests of that are skipped.
	Reopen func(t testing.TB, s storage.Store) storage.Store
	// HugeBytes is the size of the largest message in the tests; 0: 20 MB.
	HugeBytes int
}

// TestStore runs the conformance suite, each part on an empty store from
// open, which TestStore closes. Optional interfaces beyond storage.Store are
// tested if the store implements them. The random part compares the store
// with package inmem; rapid's flags, such as -rapid.checks, apply to it.
func TestStore(t *testing.T, open func(t testing.TB) storage.Store, o *Options) {
	if o == nil {
		o = &Options{}
	}
	s := &suite{Options: *o, open: open}
	if s.HugeBytes == 0 {
		s.HugeBytes = 20 << 20
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Append", s.testAppend},
		{"AppendRepeated", s.testRepeated},
		{"AppendRefused", s.testRefused},
		{"AppendEarly", s.testEarly},
		{"Meta", s.testMeta},
		{"Tenants", s.testTenants},
		{"Read", s.testRead},
		{"ReadInfo", s.testReadInfo},
		{"ReadWhileAppending", s.testSnapshot},
		{"ReadNested", s.testNested},
		{"Match", s.testMatch},
		{"Sessions", s.testSessions},
		{"Hostile", s.testHostile},
		{"Huge", s.testHuge},
		{"Cancelled", s.testCancelled},
		{"ManyWritersOneSession", s.testOneSession},
		{"ManyWritersManySessions", s.testManySessions},
		{"Index", s.testIndex},
		{"IndexConflict", s.testIndexConflict},
		{"Vectors", s.testVectors},
		{"Watch", s.testWatch},
		{"Delete", s.testDelete},
		{"Contents", s.testContents},
		{"Rewrite", s.testRewrite},
		{"Keys", s.testKeys},
		{"Check", s.testCheck},
		{"Closed", s.testClosed},
		{"Random", s.testRandom},
	} {
		t.Run(part.name, part.run)
	}
}

type suite struct {
	Options
	open func(t testing.TB) storage.Store
}

// store opens a store and closes it at the end of the test.
func (s *suite) store(t *testing.T) storage.Store {
	t.Helper()
	st := s.open(t)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return st
}

// lasting opens a store. The returned function reopens it, if that is
// possible, and returns the open store.
func (s *suite) lasting(t *testing.T) (storage.Store, func() storage.Store) {
	t.Helper()
	st := s.open(t)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return st, func() storage.Store {
		if s.Reopen != nil {
			st = s.Reopen(t, st)
		}
		return st
	}
}

// tb is the part of testing.TB that the helpers need; rapid's tests have it
// too.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// appendAll appends records in batches of n.
func appendAll(t tb, st storage.Store, key furl.SessionKey, records []furl.Record, n int) {
	t.Helper()
	for i := 0; i < len(records); i += n {
		b := storage.Batch{Records: records[i:min(i+n, len(records))]}
		if err := st.Append(context.Background(), key, b); err != nil {
			t.Fatalf("append records %d to %d: %v", i+1, i+len(b.Records), err)
		}
	}
}

// collect returns all values of a sequence.
func collect[V any](t tb, seq iter.Seq2[V, error]) []V {
	t.Helper()
	all, err := gather(seq)
	if err != nil {
		t.Fatalf("after %d: %v", len(all), err)
	}
	return all
}

// gather returns the values before the first error, and the error.
func gather[V any](seq iter.Seq2[V, error]) (all []V, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// holds fails the test unless the session has exactly these records.
func holds(t tb, st storage.Store, key furl.SessionKey, want []furl.Record) {
	t.Helper()
	same(t, key, collect(t, st.Read(context.Background(), key, 0)), want)
}

// same fails the test unless the records of a session are equal.
func same(t tb, key furl.SessionKey, got, want []furl.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("session %s has %d records, want %d", key.Session, len(got), len(want))
	}
	for i := range got {
		if a, b := stored(t, got[i]), stored(t, want[i]); a != b {
			t.Fatalf("record %d of session %s has changed:\n%q\n%q", want[i].Seq, key.Session, clip(a), clip(b))
		}
	}
}

// stored is a record as it is stored.
func stored(t tb, r furl.Record) string {
	t.Helper()
	head, body, err := record.Encode(r)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(head) + "\x00" + string(body)
}

func clip(s string) string { return s[:min(len(s), 400)] }

// key is a session of the tenant "".
func key(id string) furl.SessionKey { return furl.SessionKey{Session: furl.SessionID(id)} }

// say returns n message records from seq on, each following the previous one;
// about distinguishes their texts.
func say(seq furl.Seq, n int, about string) []furl.Record {
	records := make([]furl.Record, n)
	for i := range records {
		at := seq + furl.Seq(i)
		m := message(fmt.Sprintf("%s, message %d", about, at))
		records[i] = furl.Record{
			Seq: at, Parent: at - 1, At: time.Unix(1_700_000_000+int64(at), 123456789).UTC(),
			Body: m, Chain: furl.DigestOf(fmt.Append(nil, about, at)),
		}
	}
	return records
}

func message(text string) *furl.Message {
	m, err := codecOf("").NewMessage(furl.RoleUser, []furl.Block{{Kind: furl.KindText, Text: text}})
	if err != nil {
		panic(fmt.Sprintf("furltest: build message: %v", err)) // a bug in this file
	}
	return m
}

// must fails the test on an error.
func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}
