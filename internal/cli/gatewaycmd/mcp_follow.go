package gatewaycmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/follow"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// followName is the beginning of the names of the files that remember what was imported.
const followName = "follow-"

// follower returns what imports the recordings of agents while they grow.
func (f *mcpFlags) follower(ctx context.Context, store storage.Store, c *config.Config) (*follow.Follower, error) {
	place, err := f.Where()
	if err != nil {
		return nil, err
	}
	dir, err := config.DataDir()
	if err != nil {
		return nil, err
	}
	if !workspace.IsDatabase(place) {
		if place, err = filepath.Abs(place); err != nil {
			return nil, err
		}
	}
	sum := furl.DigestOf([]byte(place))
	name := filepath.Join(dir, followName+hex.EncodeToString(sum[:6]))
	empty, err := isEmpty(ctx, store)
	if err != nil {
		return nil, err
	}
	folders := f.folders
	if len(folders) == 0 {
		if folders, err = c.FollowFolders(); err != nil {
			return nil, err
		}
	}
	for i := range folders {
		if folders[i], err = filepath.Abs(folders[i]); err != nil {
			return nil, err
		}
	}
	places := agents.Places
	if len(folders) > 0 {
		places = func() []string { return folders }
	}
	indexer := recall.NewIndexer(store, &recall.IndexerOptions{Log: f.Log})
	// Indexing after each append leaves little to do for searches during the import.
	to := &followTarget{Importer: recorded.Importer{Store: store, Merge: true, Appended: indexer.Catchup}, indexer: indexer}
	return follow.New(to, follow.Options{
		Places: places, State: name + ".json", Lock: name + ".lock", Forget: empty, Counter: token.O200k(),
		Interval: f.interval, Settle: f.settle, Pause: f.pause, Logger: f.Log,
	}), nil
}

// followTarget imports recordings into a store, and indexes them at once.
type followTarget struct {
	recorded.Importer
	indexer *recall.Indexer
	listed  time.Time // when the gateway's sessions were listed
}

// relist is how often the sessions that a gateway has recorded are listed again.
const relist = 30 * time.Second

// Import implements follow.Target.
func (t *followTarget) Import(ctx context.Context, rec *transcript.Recording) ([]follow.Imported, error) {
	now := time.Now()
	begins, err := t.begins(ctx, rec, now)
	if err != nil {
		return nil, err
	}
	if begins || now.Sub(t.listed) > relist {
		t.Recorded, t.listed = nil, now
	}
	var out []follow.Imported
	for _, s := range rec.Sessions {
		line, err := t.Session(ctx, rec, s)
		if err != nil {
			return out, err
		}
		key := furl.SessionKey{Tenant: line.Tenant, Session: line.Session}
		out = append(out, follow.Imported{Key: key, Same: line.Same})
		if line.Added > 0 {
			if err := t.indexer.Catchup(ctx, key); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// begins reports whether a recording has a new session of an agent that is running: a gateway
// may have begun to record it since its sessions were listed.
func (t *followTarget) begins(ctx context.Context, rec *transcript.Recording, now time.Time) (bool, error) {
	for _, s := range rec.Sessions {
		if now.Sub(recorded.NewestOf(s.Log.Records(0))) > relist {
			continue
		}
		_, err := storage.Info(ctx, t.Store, furl.SessionKey{Session: recorded.SessionID(s)})
		if errors.Is(err, storage.ErrNoSession) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// Append implements follow.Target.
func (t *followTarget) Append(ctx context.Context, key furl.SessionKey, records []furl.Record) error {
	info, err := t.Info(ctx, key)
	if err != nil {
		return err
	}
	if info.Records+1 != records[0].Seq {
		return fmt.Errorf("session %s has %d records: %w", key.Session, info.Records, furl.ErrConflict)
	}
	meta := info.Meta.Clone()
	meta.Imported = records[len(records)-1].Seq
	if newest := recorded.NewestOf(records); newest.After(meta.Recorded) {
		meta.Recorded = newest
	}
	return t.Add(ctx, key, &meta, &info.Meta, records, nil)
}
