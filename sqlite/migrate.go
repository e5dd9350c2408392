package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"time"

	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Format is the newest version of the file format that this package knows. It
// is the version that it writes.
const Format = 3

// oldestRead is the oldest format that can be read without migrating it.
const oldestRead = 1

// applicationID identifies furl's SQLite files: "furl".
const applicationID = 0x6675726c

// migrations contains 0001.sql, which creates the first format, and for each
// later format a script that migrates from the previous one. Released scripts
// must not be changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// querier is a connection or a pool of connections.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkFormat reads the format of a file. It refuses files that are not furl
// stores, newer formats, and, for reading only, formats that must be migrated
// first.
func checkFormat(ctx context.Context, q querier, reading bool) error {
	version, err := formatOf(ctx, q)
	switch {
	case err != nil:
		return err
	case reading && version == 0:
		return errForeign
	case reading && version < oldestRead:
		return fmt.Errorf("the store has format %d: open it once for writing to migrate it to format %d", version, Format)
	}
	return nil
}

// formatOf returns the version of the file's format, 0 for an empty file.
func formatOf(ctx context.Context, q querier) (int, error) {
	var id, version, tables int
	row := q.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`)
	if err := row.Scan(&id, &version, &tables); err != nil {
		return 0, err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return 0, nil
	case id != applicationID || version < 1 || tables == 0:
		return 0, errForeign
	case version > Format:
		return 0, fmt.Errorf("format %d is not supported (this furl knows formats up to %d): use a newer furl: %w", version, Format, record.ErrNewerFormat)
	}
	return version, nil
}

// migrate migrates the file to Format, and returns the sessions that it
// renamed. If several processes open a new file at the same time, one of them
// migrates it and the others wait.
func migrate(ctx context.Context, conn *sql.Conn) (renamed []storage.Renamed, err error) {
	exec := func(query string, args ...any) error {
		_, err := conn.ExecContext(ctx, query, args...)
		return err
	}
	if version, err := formatOf(ctx, conn); err != nil || version == Format {
		return nil, err
	}
	if err := exec("BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	err = func() error {
		version, err := formatOf(ctx, conn) // another process may have migrated it
		if err != nil {
			return err
		}
		for version++; version <= Format; version++ {
			text, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d.sql", version))
			if err != nil {
				return err
			}
			if err := exec(string(text)); err != nil {
				return fmt.Errorf("migrate to format %d: %w", version, err)
			}
			if version == 2 {
				if renamed, err = renameReserved(ctx, conn); err != nil {
					return fmt.Errorf("rename sessions with reserved ids: %w", err)
				}
			}
			if err := exec("INSERT INTO migrations (version, at) VALUES (?, ?)", version, time.Now().UnixNano()); err != nil {
				return err
			}
		}
		if err := exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
			return err
		}
		if err := exec(fmt.Sprintf("PRAGMA user_version = %d", Format)); err != nil {
			return err
		}
		return exec("COMMIT")
	}()
	if err != nil {
		_ = exec("ROLLBACK") // the earlier error says more
		return nil, err
	}
	return renamed, nil
}
