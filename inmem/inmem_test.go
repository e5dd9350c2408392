package inmem_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

func TestConformance(t *testing.T) {
	furltest.TestStore(t, func(testing.TB) storage.Store { return inmem.New() }, nil)
}

// A session is created by its first append; its key reads it.
func Example() {
	ctx := context.Background()
	store := inmem.New()
	defer store.Close()

	log := furl.NewLog()
	first, err := log.Append(0, furl.Record{}.At, furl.Client, furl.TextMessage(furl.RoleUser, "hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	key := furl.SessionKey{Session: "s-1"}
	batch := storage.Batch{Records: []furl.Record{first}, Meta: &storage.Meta{Title: "a greeting"}}
	if err := store.Append(ctx, key, batch); err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range store.Read(ctx, key, 0) {
		fmt.Println(r.Seq, r.Body.(*furl.Message).Blocks[0].Text, err)
	}
	// Output: 1 hello <nil>
}

// Shared records are read without a copy, and the session can be extended
// like others.
func TestShare(t *testing.T) {
	ctx, key := t.Context(), furl.SessionKey{Session: "s"}
	log := furl.NewLog()
	for _, text := range []string{"one", "two"} {
		if _, err := log.Append(log.Head(), time.Unix(1, 0), furl.Import, furl.TextMessage(furl.RoleUser, text)); err != nil {
			t.Fatal(err)
		}
	}
	records := log.Records(0)
	store := inmem.New()
	if err := store.Share(ctx, key, storage.Batch{Records: records[:1], Meta: &storage.Meta{Title: "t"}}); err != nil {
		t.Fatal(err)
	}
	if err := store.Append(ctx, key, storage.Batch{Records: records[:1]}); err != nil {
		t.Errorf("repeating a shared record: %v", err)
	}
	if err := store.Append(ctx, key, storage.Batch{Records: records[1:]}); err != nil {
		t.Error(err)
	}
	n := 0
	for r, err := range store.Read(ctx, key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if same := r.Body.(*furl.Message) == records[n].Body; same != (n == 0) {
			t.Errorf("record %d is shared: %v", r.Seq, same)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}
