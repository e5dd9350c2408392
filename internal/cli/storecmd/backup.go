package storecmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// BackupCommand returns furl backup.
func BackupCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup of a SQLite store",
		Long: `Writes a copy of the store to a new file, as of one moment, and checks the copy. A gateway
may go on writing. Keys are not in the backup: if the store is encrypted, keep the
master key and the output of furl encryption export apart from it. For PostgreSQL, use
pg_dump; docs/operate/stores.md has the commands.`,
		Example: `  furl backup /backups/furl-2026-11-25.db
  furl backup restore /backups/furl-2026-11-25.db`,
		Args: cmdline.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return cmdline.BadUsage("name a new file for the backup")
			}
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			from, ok := below(store).(*sqlite.Store)
			if !ok {
				return cmdline.BadUsage("furl backup works with SQLite files only; use pg_dump for PostgreSQL, see docs/operate/stores.md")
			}
			if err := from.Backup(cmd.Context(), args[0]); err != nil {
				return err
			}
			return copied(&f, cmd, "Wrote and checked the backup", args[0])
		},
	}
	f.Add(cmd)
	cmd.AddCommand(restoreBackupCommand(p))
	return cmd
}

// below returns the store below the encryption.
func below(store storage.Store) storage.Store {
	if l, ok := store.(encrypted.Layer); ok {
		return l.Inner()
	}
	return store
}

func restoreBackupCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup to a new store",
		Long: `Checks a backup and copies it to the place of the store, which must not exist: move a
damaged store away first. If the backup is encrypted, restore the keys of its tenants
with furl encryption import.`,
		Example: `  furl backup restore /backups/furl-2026-11-25.db --store restored.db`,
		Args:    cmdline.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.BadUsage("name the file of the backup")
			}
			place, err := f.Where()
			if err != nil {
				return err
			}
			if workspace.IsDatabase(place) {
				return cmdline.BadUsage("furl backup restore works with SQLite files only; use pg_restore for PostgreSQL, see docs/operate/stores.md")
			}
			if err := sqlite.RestoreBackup(cmd.Context(), args[0], place); err != nil {
				return err
			}
			return copied(&f, cmd, "Checked the backup and restored it to", place)
		},
	}
	f.Add(cmd)
	return cmd
}

// copied reports a file that was written.
func copied(f *cmdline.StoreFlags, cmd *cobra.Command, what, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"file": file, "bytes": info.Size()})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s, %s.\n", what, file, numbers.Bytes(info.Size()))
	return err
}
