package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// One process appends, the next one reads.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "furl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, path, key := context.Background(), filepath.Join(dir, "furl.db"), furl.SessionKey{Session: "s-1"}

	store, err := sqlite.Open(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	log := furl.NewLog()
	record, err := log.Append(log.Head(), time.Now(), furl.Client, furl.TextMessage(furl.RoleUser, "hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Append(ctx, key, storage.Batch{Records: []furl.Record{record}}); err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Close(); err != nil { // it is on disk already
		fmt.Println(err)
		return
	}

	store, err = sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	for r, err := range store.Read(ctx, key, 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Seq, r.By, r.Body.(*furl.Message).Blocks[0].Text)
	}
	// Output: 1 client hello
}
