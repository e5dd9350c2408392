package furltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Messages are found by their chains in every session, the most recently
// appended first.
func (s *suite) testMatch(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx := context.Background()
	shared := say(1, 3, "shared")
	for _, id := range []string{"a", "b", "c"} {
		appendAll(t, st, key(id), shared, 3)
	}
	again := say(4, 1, "shared")
	again[0].Chain = shared[0].Chain // the same chain twice in one session
	appendAll(t, st, key("b"), again, 1)
	mixed := []furl.Record{
		{Seq: 4, Parent: 3, Body: &furl.Exchange{Model: "m"}, Chain: shared[1].Chain}, // not a message
		{Seq: 5, Parent: 4, Body: message("no chain")},
	}
	appendAll(t, st, key("a"), mixed, 2)
	st = reopen()
	at := func(id string, seq furl.Seq, chain furl.Digest) storage.Matched {
		return storage.Matched{Session: furl.SessionID(id), Seq: seq, Chain: chain}
	}
	one, two := shared[0].Chain, shared[1].Chain
	all := []storage.Matched{
		at("b", 4, one),
		at("c", 2, two), at("c", 1, one), at("b", 2, two), at("b", 1, one), at("a", 2, two), at("a", 1, one),
	}
	for _, tt := range []struct {
		name   string
		chains []furl.Digest
		limit  int
		want   []storage.Matched
	}{
		{"all", []furl.Digest{two, one}, 100, all},
		{"asked for twice", []furl.Digest{two, one, two, one}, 100, all},
		{"three", []furl.Digest{one, two}, 3, all[:3]},
		{"one", []furl.Digest{one, two}, 1, all[:1]},
		{"none wanted", []furl.Digest{one}, 0, nil},
		{"one chain", []furl.Digest{two}, 2, []storage.Matched{at("c", 2, two), at("b", 2, two)}},
		{"one among many others", append(manyDigests(2000), two), 1, []storage.Matched{at("c", 2, two)}},
		{"an unknown one", []furl.Digest{{9}}, 5, nil},
		{"one with the same first bytes", []furl.Digest{alike(one)}, 5, nil},
		{"the zero chain", []furl.Digest{{}}, 5, nil},
		{"nothing", nil, 5, nil},
	} {
		got, err := st.Match(ctx, "", tt.chains, tt.limit)
		must(t, err)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s (-want +got):\n%s", tt.name, cmp.Diff(tt.want, got))
		}
	}
}

func manyDigests(n int) []furl.Digest {
	all := make([]furl.Digest, n)
	for i := range all {
		all[i] = furl.DigestOf(fmt.Append(nil, "unknown", i))
	}
	return all
}

// alike is another digest with the same first 24 bytes.
func alike(d furl.Digest) furl.Digest {
	d[31] ^= 1
	return d
}

// Sessions are listed newest first, filtered by all conditions of a query.
func (s *suite) testSessions(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx := context.Background()
	begun := time.Now().Add(-time.Minute) // a server's clock may differ a little
	ids := []string{"ab", "ab.1", "abc", "b", "AB", "a_c"}
	var size int64
	for _, r := range say(1, 2, "a") {
		size += int64(r.Body.(*furl.Message).Bytes())
	}
	for i, id := range ids {
		b := storage.Batch{Records: say(1, 2, "a"), Meta: &storage.Meta{Title: id, Hint: fmt.Sprint("h", i%2)}}
		must(t, st.Append(ctx, key(id), b))
	}
	appendAll(t, st, key("ab.1"), []furl.Record{{Seq: 3, Parent: 2, Body: &furl.Exchange{}}}, 1)
	st = reopen()
	list := func(q storage.SessionQuery) []string {
		var got []string
		for _, i := range collect(t, st.Sessions(ctx, "", q)) {
			got = append(got, string(i.Session))
		}
		return got
	}
	all := collect(t, st.Sessions(ctx, "", storage.SessionQuery{}))
	var times []time.Time
	for i, info := range all {
		times = append(times, info.Updated)
		if i > 0 && !info.Updated.Before(all[i-1].Updated) {
			t.Errorf("session %s, updated %v, comes after %v", info.Session, info.Updated, all[i-1].Updated)
		}
		if info.Updated.Before(begun) || info.Created.After(info.Updated) || info.Updated.Location() != time.UTC {
			t.Errorf("session %s was created %v and updated %v, want now, in this order, in UTC", info.Session, info.Created, info.Updated)
		}
		records := furl.Seq(2)
		if info.Session == "ab.1" {
			records = 3
		}
		if info.Records != records || info.Messages != 2 || info.Bytes != size || info.Title != string(info.Session) {
			t.Errorf("session %s is %+v, want %d records, 2 messages, %d bytes", info.Session, info, records, size)
		}
	}
	for _, tt := range []struct {
		name string
		q    storage.SessionQuery
		want []string
	}{
		{"all", storage.SessionQuery{}, []string{"ab.1", "a_c", "AB", "b", "abc", "ab"}},
		{"two", storage.SessionQuery{Limit: 2}, []string{"ab.1", "a_c"}},
		{"more than there are", storage.SessionQuery{Limit: 99}, []string{"ab.1", "a_c", "AB", "b", "abc", "ab"}},
		{"prefix", storage.SessionQuery{Prefix: "ab"}, []string{"ab.1", "abc", "ab"}},
		{"prefix with an SQL wildcard", storage.SessionQuery{Prefix: "a_"}, []string{"a_c"}},
		{"prefix of nothing", storage.SessionQuery{Prefix: "%"}, nil},
		{"prefix that is not a valid id", storage.SessionQuery{Prefix: "\xff\x00"}, nil},
		{"hint", storage.SessionQuery{Hint: "h1"}, []string{"ab.1", "a_c", "b"}},
		{"hint and prefix", storage.SessionQuery{Hint: "h1", Prefix: "a"}, []string{"ab.1", "a_c"}},
		{"hint and limit", storage.SessionQuery{Hint: "h0", Limit: 1}, []string{"AB"}},
		{"unknown hint", storage.SessionQuery{Hint: "h"}, nil},
		{"since", storage.SessionQuery{Since: times[2]}, []string{"ab.1", "a_c", "AB"}},
		{"before", storage.SessionQuery{Before: times[3]}, []string{"abc", "ab"}},
		{"between", storage.SessionQuery{Since: times[4], Before: times[1]}, []string{"AB", "b", "abc"}},
		{"long ago", storage.SessionQuery{Before: time.Unix(0, 0)}, nil},
		{"since the year 1", storage.SessionQuery{Since: time.Time{}.Add(1), Limit: 1}, []string{"ab.1"}},
	} {
		if got := list(tt.q); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := collect(t, st.Sessions(ctx, "nobody", storage.SessionQuery{})); len(got) != 0 {
		t.Errorf("an unknown tenant has %d sessions", len(got))
	}
}
