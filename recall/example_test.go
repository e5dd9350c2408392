package recall_test

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// Search all sessions of a store.
func ExampleSearcher() {
	store := inmem.New()
	log := furl.NewLog()
	for _, text := range []string{"Why does openStore fail on a read-only disk?", "It creates a lock file next to the store."} {
		message := furl.TextMessage(furl.RoleUser, text)
		message.Seal()
		if _, err := log.Append(log.Head(), time.Unix(1_800_000_000, 0), furl.Client, message); err != nil {
			fmt.Println(err)
		}
	}
	key := furl.SessionKey{Session: "disk"}
	if err := store.Append(context.Background(), key, storage.Batch{Records: log.Records(0)}); err != nil {
		fmt.Println(err)
	}

	searcher := recall.NewSearcher(store, nil)
	result, err := searcher.Search(context.Background(), recall.Request{Text: "openStore lock", Excerpt: 30})
	if err != nil {
		fmt.Println(err)
	}
	for _, hit := range result.Hits {
		fmt.Println(hit.Handle(true), hit.Matched, hit.Excerpt)
	}
	// Output:
	// furl:disk/1.0 [openStore] …does openStore fail on a…
	// furl:disk/2.0 [Store lock] …lock file next to the store.
}

// Find the blocks with a function among those that the view does not show.
func ExampleIndex() {
	texts := map[furl.Pos]string{
		{Msg: 1}: "Why does openStore fail on a read-only disk?",
		{Msg: 2}: "store/sqlite.go:41: func openStore(path string) (*Store, error) {",
		{Msg: 3}: "It creates a lock file next to the store.",
	}
	var index recall.Index
	for seq := range furl.Seq(3) {
		pos := furl.Pos{Msg: seq + 1}
		index.Add(pos, texts[pos])
	}

	shown := furl.Pos{Msg: 1}
	hits := index.Search("openStore", 5, func(p furl.Pos) bool { return p != shown })
	for _, hit := range hits {
		fmt.Println(recall.HandleOf(hit.Pos), hit.Matched)
	}
	// Output:
	// furl:2.0 [openStore]
	// furl:3.0 [Store]
}
