package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup writes a copy of the store to a new file, as of one moment, while this and
// other processes go on writing. The copy has everything but the keys of tenants,
// is readable by its owner only, and was checked when Backup returns. The file must
// not exist.
func (s *Store) Backup(ctx context.Context, file string) error {
	err := s.ready(ctx)
	if err == nil {
		err = s.backup(ctx, file)
	}
	if err != nil {
		return s.failed("write a backup of", err)
	}
	return nil
}

func (s *Store) backup(ctx context.Context, file string) error {
	part := file + ".part"
	return intoNew(file, part, func() error {
		from := &Store{path: s.path, o: s.o, frozen: s.frozen}
		db := from.connectTo(true, false)
		defer db.Close()
		if _, err := db.ExecContext(ctx, "VACUUM INTO ?", part); err != nil {
			return err
		}
		if err := withoutKeys(ctx, part); err != nil {
			return err
		}
		return verify(ctx, part)
	})
}

// withoutKeys removes the keys of tenants from a file that only this process uses.
func withoutKeys(ctx context.Context, file string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	copied := &Store{path: path}
	db := copied.connect(false)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"PRAGMA journal_mode = MEMORY", "PRAGMA synchronous = FULL",
		"DROP TABLE IF EXISTS tenant_keys", // overwritten: secure_delete
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return db.Close()
}

// verify checks a file that no process writes.
func verify(ctx context.Context, file string) error {
	copied, err := Open(file, &Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer copied.Close()
	for p, err := range copied.Check(ctx, false) {
		if err != nil {
			return err
		}
		return fmt.Errorf("the copy is damaged: session %s, record %d: %s", p.Session.Session, p.Seq, p.Text)
	}
	return nil
}

// intoNew creates a file with the content that write gives to the file part. The file
// appears when it is complete and on disk.
func intoNew(file, part string, write func() error) (err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists already: name a new file", file)
	}
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a backup that was interrupted
		return err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(part)
		}
	}()
	if err := write(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// RestoreBackup copies a backup to a new store. The backup is checked first, and the
// store must not exist.
func RestoreBackup(ctx context.Context, backup, store string) error {
	if _, err := os.Stat(backup); err != nil {
		return fmt.Errorf("restore a backup: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return fmt.Errorf("restore a backup: %w", err)
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(store + suffix); err == nil {
			return fmt.Errorf("restore a backup: %s is left of another store: move it away", store+suffix)
		}
	}
	part := store + ".part"
	err := intoNew(store, part, func() error {
		from, err := Open(backup, &Options{ReadOnly: true})
		if err != nil {
			return err
		}
		defer from.Close()
		db := from.connectTo(true, false)
		defer db.Close()
		if _, err := db.ExecContext(ctx, "VACUUM INTO ?", part); err != nil {
			return explain(err)
		}
		return verify(ctx, part)
	})
	if err != nil {
		return fmt.Errorf("restore %s to %s: %w", backup, store, err)
	}
	return nil
}
