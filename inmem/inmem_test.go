package inmem_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
)

func TestConformance(t *testing.T) {
	furltest.TestStore(t, func(testing.TB) furl.Store { return inmem.New() }, nil)
}

// A session is appended to, and read by whoever has its key.
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
	batch := furl.Batch{Records: []furl.Record{first}, Meta: &furl.Meta{Title: "a greeting"}}
	if err := store.Append(ctx, key, batch); err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range store.Read(ctx, key, 0) {
		fmt.Println(r.Seq, r.Body.(*furl.Message).Blocks[0].Text, err)
	}
	// Output: 1 hello <nil>
}
