package gatewaycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/index"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/modelsapi"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/setup"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// uninstallFlags are the flags of furl uninstall.
type uninstallFlags struct {
	cmdline.StoreFlags
	yes, dry bool
}

// UninstallCommand returns furl uninstall.
func UninstallCommand(p cmdline.Program) *cobra.Command {
	f := uninstallFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Delete everything that furl keeps on this machine",
		Long: `Undoes every furl setup, and deletes the store with its sessions, the key of the
tenants, the logs, the index of recordings, what furl mcp remembers of them, the history
of furl chat and its copies of files that its tools have changed, and the configuration
file, after it has listed them and asked. It leaves the recordings of your agents, backups,
and a PostgreSQL database alone. At the end it prints how to remove the program itself.
If the store has sessions under legal hold (furl hold), nothing is deleted.`,
		Example: `  furl uninstall --dry-run
  furl uninstall --yes`,
		Args: cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().StringVar(&f.Place, "store", "", "`file` of the store (default $FURL_STORE, else that of the configuration)")
	cmdline.AddConfig(cmd.Flags(), &f.Config)
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "list what would be deleted, change nothing")
	return cmd
}

// run is furl uninstall.
func (f *uninstallFlags) run(cmd *cobra.Command) error {
	kept, err := keptFilesOf(&f.StoreFlags)
	if err != nil {
		return err
	}
	folder, err := setupFolder()
	if err != nil {
		return err
	}
	setups, err := setup.Done(folder)
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	if err := noneHeld(&f.StoreFlags, cmd.Context(), &kept); err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	if kept, err = keptFilesOf(&f.StoreFlags); err != nil { // with those that opening the store has made
		return err
	}
	out := cmd.OutOrStdout()
	if !f.dry && !f.yes && len(kept.files)+len(setups) > 0 {
		for _, name := range setups {
			fmt.Fprintf(cmd.ErrOrStderr(), "setup of %s\n", cmdline.Printable(name))
		}
		for _, file := range kept.files {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s  %s\n", cmdline.Printable(file.path), numbers.Bytes(file.size))
		}
		if err := cmdline.Confirm(cmd, "Delete these files permanently?"); err != nil {
			return err
		}
	}
	verb := "deleted"
	if f.dry {
		verb = "would delete"
	}
	for _, name := range setups {
		if f.dry {
			fmt.Fprintf(out, "would undo the setup of %s\n", cmdline.Printable(name))
		} else if err := undoSetup(out, folder, name); err != nil {
			return fmt.Errorf("uninstall: undo the setup of %s: %w", name, err)
		}
	}
	for _, file := range kept.files {
		for _, path := range file.parts() {
			if f.dry {
				break
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("uninstall: %w", err)
			}
		}
		fmt.Fprintf(out, "%s %s  %s\n", verb, cmdline.Printable(file.path), numbers.Bytes(file.size))
	}
	if len(kept.files)+len(setups) == 0 {
		fmt.Fprintln(out, "furl keeps no files on this machine.")
	}
	if !f.dry {
		_ = os.Remove(setup.LockName(folder)) // undoing made it
		for _, dir := range kept.folders {
			_ = os.Remove(dir) // stays if something else is in it
		}
	}
	if kept.database {
		fmt.Fprintln(out, "The sessions in the PostgreSQL database were not deleted: furl delete deletes them.")
	}
	if program, err := os.Executable(); err == nil {
		fmt.Fprintf(out, "To remove the program, delete %s\n", cmdline.Printable(program))
	}
	return nil
}

// undoSetup undoes one setup and says what stays.
func undoSetup(out io.Writer, folder, name string) error {
	p, err := setup.Undo(folder, name)
	if err != nil {
		return err
	}
	var problems []string
	if name == setup.ServiceName && len(p.Files) > 0 {
		problems = runService(p.Files[0].Path, false)
	}
	if err := p.Apply(); err != nil {
		return err
	}
	fmt.Fprintf(out, "undid the setup of %s\n", cmdline.Printable(name))
	for _, note := range append(p.Notes, problems...) {
		fmt.Fprintf(out, "Note: %s\n", cmdline.Printable(note))
	}
	return nil
}

// noneHeld returns an error if a hold keeps sessions of the store that would be deleted, or
// if the store cannot be asked.
func noneHeld(f *cmdline.StoreFlags, ctx context.Context, kept *keptFiles) (err error) {
	if kept.store == "" {
		return nil
	}
	store, err := f.Existing(ctx)
	if errors.Is(err, fs.ErrNotExist) { // the configuration file was deleted already
		store, err = sqlite.Open(kept.store, &sqlite.Options{ReadOnly: true})
	}
	if err != nil {
		return fmt.Errorf("sessions of %s may be under legal hold, and it cannot be opened; to delete it without asking it, delete the file first: %w", cmdline.Printable(kept.store), err)
	}
	defer workspace.CloseStore(store, &err)
	holds, err := storage.Holds(ctx, store)
	if err != nil || len(holds) == 0 {
		return err
	}
	return fmt.Errorf("%s is under legal hold: %s (%s). Nothing was deleted. furl hold list shows all holds, and furl hold release releases one", cmdline.Printable(kept.store), operation.HeldWords(&holds[0]), cmdline.Printable(holds[0].Reason))
}

// keptFiles are what furl keeps on a machine.
type keptFiles struct {
	files    []keptFile
	store    string   // the file of the store, if there is one
	folders  []string // of the files, inner ones first; they may hold other files
	database bool     // the store is a database, which is not among the files
}

type keptFile struct {
	path   string
	size   int64    // in bytes
	inside []string // if it is a folder, the files in it that furl has made
}

// parts returns the paths of the files.
func (f *keptFile) parts() []string {
	if f.inside != nil {
		return f.inside
	}
	return []string{f.path}
}

// keptFilesOf finds the files that furl keeps. It names them one by one instead of
// deleting a folder, because the environment may name a folder with other files.
func keptFilesOf(f *cmdline.StoreFlags) (kept keptFiles, err error) {
	configFile := f.Config
	if configFile == "" {
		if configFile, err = config.Path(); err != nil {
			return kept, err
		}
	}
	data, err := config.DataDir()
	if err != nil {
		return kept, err
	}
	store, err := f.Where()
	if errors.Is(err, fs.ErrNotExist) { // the configuration file was deleted already
		store, err = filepath.Join(data, "furl.db"), nil
	}
	if err != nil {
		return kept, fmt.Errorf("find the store: %w", err)
	}
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			kept.files = append(kept.files, keptFile{path, info.Size(), nil})
		}
	}
	if workspace.IsDatabase(store) {
		kept.database = true
	} else {
		if _, err := os.Stat(store); err == nil {
			kept.store = store
		}
		for _, suffix := range []string{"", "-wal", "-shm", "-open"} {
			add(store + suffix)
		}
	}
	for _, name := range launch.RunFiles {
		add(filepath.Join(data, name))
	}
	for _, name := range []string{serving.TenantSecretName, workspace.ChatHistory, modelsapi.FileName} {
		add(filepath.Join(data, name))
	}
	if kept.folders, err = addTree(filepath.Join(data, workspace.ChatFiles), add); err != nil {
		return kept, fmt.Errorf("list the copies of changed files: %w", err)
	}
	indexed := filepath.Join(data, index.Folder)
	if files, size := index.Files(indexed); len(files) > 0 {
		kept.files = append(kept.files, keptFile{indexed, size, files})
	}
	kept.folders = append(kept.folders, indexed)
	followed, err := filepath.Glob(filepath.Join(data, followName+"*"))
	if err != nil {
		return kept, fmt.Errorf("list %s: %w", data, err)
	}
	for _, name := range followed {
		add(name)
	}
	add(configFile)
	kept.folders = append(kept.folders, data, filepath.Dir(configFile))
	return kept, nil
}

// addTree adds the files in a folder, and returns its folders, inner ones first.
func addTree(dir string, add func(path string)) (folders []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			folders = append(folders, path)
		default:
			add(path)
		}
		return nil
	})
	slices.Reverse(folders)
	return folders, err
}
