package recall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

// full is a store that takes no pages, but for those of one session.
type full struct {
	*inmem.Store
	takes furl.SessionID
	asked int
}

func (f *full) WriteIndex(ctx context.Context, key furl.SessionKey, x storage.IndexWrite) error {
	if key.Session == f.takes {
		return f.Store.WriteIndex(ctx, key, x)
	}
	f.asked++
	return errors.New("the disk is full")
}

func fullOf(t *testing.T, sessions int) *full {
	t.Helper()
	store := &full{Store: inmem.New()}
	records := furltest.Session(furltest.SessionOptions{Messages: 2})
	for i := range sessions {
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("s%d", i))}
		if err := store.Append(t.Context(), key, storage.Batch{Records: records}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// If no session can be indexed, the indexer does not try all of them, and the
// error is as short as for a few.
func TestIndexerGivesUp(t *testing.T) {
	store := fullOf(t, 1000)
	err := NewIndexer(store, nil).CatchupTenant(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "and 5 more sessions") || !strings.Contains(err.Error(), "skipped 992 other sessions") {
		t.Errorf("got %v", err)
	}
	if store.asked != maxFailuresInRow {
		t.Errorf("%d sessions were read in vain, want %d", store.asked, maxFailuresInRow)
	}
	if n := len(err.Error()); n > 1000 {
		t.Errorf("an error of %d bytes", n)
	}
}

// However many sessions in a row cannot be indexed, a session that can be is
// indexed, wherever it is in the list.
func TestIndexerGoesOn(t *testing.T) {
	const sessions = 5 * maxFailuresInRow
	for i := range sessions {
		store := fullOf(t, sessions)
		store.takes = furl.SessionID(fmt.Sprintf("s%d", i))
		x := NewIndexer(store, nil)
		for range sessions / maxFailuresInRow {
			if err := x.CatchupTenant(t.Context(), ""); err == nil {
				t.Fatal("no error for sessions that cannot be indexed")
			}
		}
		for info, err := range store.Unindexed(t.Context(), "") {
			if err != nil || info.Session == store.takes {
				t.Errorf("session %s is not indexed: %v", info.Session, err)
			}
		}
	}
}

// An indexer that keeps failing logs one line per minute, however often Touch is
// called.
func TestIndexerComplainsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		x := NewIndexer(fullOf(t, 3), &IndexerOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- x.Run(ctx) }()
		for range 10 * 60 {
			x.Touch(furl.SessionKey{Session: "s1"}, 1<<20, 1<<20)
			time.Sleep(time.Second)
		}
		cancel()
		<-done
		lines := strings.Count(log.String(), "\n")
		if lines < 8 || lines > 11 {
			t.Errorf("%d lines in ten minutes, want one a minute", lines)
		}
		if !strings.Contains(log.String(), "withheld=") {
			t.Error("the log does not say how many errors it withheld")
		}
	})
}
