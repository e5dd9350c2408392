package recall_test

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
)

// Find the block in which a function was mentioned, among those that the view
// does not show.
func ExampleIndex() {
	texts := map[furl.Pos]string{
		{Msg: 1}: "Why does openStore fail on a read-only disk?",
		{Msg: 2}: "store/sqlite.go:41: func openStore(path string) (*Store, error) {",
		{Msg: 3}: "It creates a lock file beside the store.",
	}
	var index recall.Index
	for seq := range furl.Seq(3) {
		pos := furl.Pos{Msg: seq + 1}
		index.Add(pos, texts[pos])
	}

	shown := furl.Pos{Msg: 1}
	hits := index.Search("openStore", recall.Options{Only: func(p furl.Pos) bool { return p != shown }})
	for _, hit := range hits {
		excerpt, _, _ := recall.Excerpt(texts[hit.Pos], "openStore", 40)
		fmt.Println(hit.Pos.Msg, hit.Matched, excerpt)
	}
	// Output:
	// 2 [openStore] …func openStore(path string) (*Store,…
	// 3 [Store] It creates a lock file beside the store.
}
