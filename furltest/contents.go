package furltest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Contents come back to the byte, belong to one session, and are deleted with
// it.
func (s *suite) testContents(t *testing.T) {
	st, reopen := s.lasting(t)
	if _, ok := st.(storage.ContentStore); !ok {
		return
	}
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(6, 6))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	shared := bytes.Repeat([]byte("a tool, and "), 500)
	all := [][]byte{{}, []byte("short"), bytes.Repeat([]byte("x"), 300), shared, noise, make([]byte, storage.MaxContent)}
	other := furl.SessionKey{Tenant: "other", Session: "a"}
	has := func(k furl.SessionKey, want ...[]byte) {
		t.Helper()
		for _, c := range want {
			got, err := st.(storage.ContentStore).Content(ctx, k, furl.DigestOf(c))
			if err != nil || !bytes.Equal(got, c) {
				t.Errorf("session %v has %d bytes of a content of %d, %v", k, len(got), len(c), err)
			}
		}
	}
	lacks := func(k furl.SessionKey, want error, contents ...[]byte) {
		t.Helper()
		for _, c := range contents {
			if got, err := st.(storage.ContentStore).Content(ctx, k, furl.DigestOf(c)); !errors.Is(err, want) {
				t.Errorf("session %v has %d bytes of a content of %d, %v; want %v", k, len(got), len(c), err, want)
			}
		}
	}
	lacks(key("a"), storage.ErrNoSession, shared)
	first := storage.Batch{Records: say(1, 2, "a"), Contents: all}
	must(t, st.Append(ctx, key("a"), first))
	must(t, st.Append(ctx, key("a"), first)) // again: nothing changes
	must(t, st.Append(ctx, key("a"), storage.Batch{Records: say(3, 1, "a"), Contents: [][]byte{shared, []byte("more"), []byte("more")}}))
	for _, k := range []furl.SessionKey{key("b"), other} {
		must(t, st.Append(ctx, k, storage.Batch{Records: say(1, 1, "b"), Contents: [][]byte{shared}}))
	}
	has(key("a"), append(all, []byte("more"))...)
	for _, k := range []furl.SessionKey{key("b"), other} {
		has(k, shared)
		lacks(k, storage.ErrNoContent, noise, []byte("more"))
	}

	// What is refused is not stored.
	if err := st.Append(ctx, key("b"), storage.Batch{Records: say(5, 1, "b"), Contents: [][]byte{[]byte("late")}}); !errors.Is(err, furl.ErrConflict) {
		t.Errorf("append after a gap: %v, want ErrConflict", err)
	}
	if err := st.Append(ctx, key("b"), storage.Batch{Records: say(2, 1, "b"), Contents: [][]byte{make([]byte, storage.MaxContent+1)}}); err == nil {
		t.Error("a content that is too large was stored")
	}
	lacks(key("b"), storage.ErrNoContent, []byte("late"))

	// A message with the bytes of a content does not depend on it.
	m := say(2, 1, "b")
	m[0].Body.(*furl.Message).Raw = bytes.Clone(noise)
	m[0].Body.(*furl.Message).Blocks = nil
	must(t, st.Append(ctx, key("b"), storage.Batch{Records: m}))
	lacks(key("b"), storage.ErrNoContent, noise)

	st = reopen()
	has(key("a"), append(all, []byte("more"))...)
	clean(t, st)
	deleter, ok := st.(storage.Deleter)
	if !ok {
		return
	}
	must(t, deleter.Delete(ctx, key("a")))
	lacks(key("a"), storage.ErrNoSession, all...)
	has(key("b"), shared)
	has(other, shared)
	holds(t, st, key("b"), append(say(1, 1, "b"), m...))
	clean(t, st)
	must(t, st.Append(ctx, key("a"), storage.Batch{Records: say(1, 1, "new")}))
	lacks(key("a"), storage.ErrNoContent, all...)
	for _, k := range []furl.SessionKey{key("a"), key("b"), other} {
		must(t, deleter.Delete(ctx, k))
	}
	clean(t, st)
}
