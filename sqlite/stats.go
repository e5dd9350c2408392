package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/furlhq/furl/storage"
)

// Stats implements storage.Checker. Total is the size of the file and of its
// write-ahead log.
func (s *Store) Stats(ctx context.Context) (storage.Stats, error) {
	st, err := s.stats(ctx)
	if err != nil {
		return st, s.failed("stats", err)
	}
	return st, nil
}

func (s *Store) stats(ctx context.Context) (st storage.Stats, err error) {
	if err := s.ready(ctx); err != nil {
		return st, err
	}
	st.Place = s.path
	if st.Format, err = formatOf(ctx, s.read); err != nil {
		return st, err
	}
	err = s.read.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(records), 0), coalesce(sum(messages), 0), coalesce(sum(bytes), 0),
		(SELECT coalesce(sum(length(data)), 0) FROM bodies) + (SELECT coalesce(sum(length(body)), 0) FROM records),
		(SELECT coalesce(sum(length(data)), 0) FROM pages), (SELECT coalesce(sum(length(data)), 0) FROM vectors) FROM sessions`).
		Scan(&st.Sessions, &st.Records, &st.Messages, &st.MessageBytes, &st.Bodies, &st.Index, &st.Vectors)
	if err != nil {
		return st, err
	}
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.path + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue
		}
		if err != nil {
			return st, err
		}
		st.Total += info.Size()
		if suffix != "" {
			st.Log = info.Size()
		}
	}
	return st, nil
}
