package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// ImportCommand returns furl import.
func ImportCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var opts importFlags
	cmd := &cobra.Command{
		Use:   "import [FILE|FOLDER|STORE]...",
		Short: "Import recorded sessions",
		Long: `Imports the sessions of recordings into the store, where you can search, show,
reduce, rewind and fork them. Formats: ` + strings.Join(transcript.Formats(), ", ") + `.
The format is detected from the content. Without arguments, it imports the
sessions of the agents on this machine.

A store of furl, such as the furl.db of another machine, is joined with this one: its
sessions that are not encrypted are imported with all that was done to them.
--project DIR says which folder on this machine the sessions of another one belong to.

Importing a recording again adds its new records. A session that the gateway has
recorded stays one session: it gets what only the recording has. A session is skipped
if it was changed in the store, or if the recording no longer starts with the same
records; --again imports it as a new session. Recordings are never changed.`,
		Example: `  furl import                           all sessions on this machine
  furl import session.jsonl other.json
  furl import ~/.claude/projects --json
  furl import copied/ --project ~/src/furl   sessions of another machine
  furl import laptop/furl.db                 the store of another machine`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if args = agents.Places(); len(args) == 0 {
					return fmt.Errorf("no recordings of agents found on this machine; name files or folders to import\nlooked in %s", agents.Searched())
				}
			}
			return imports(&f, cmd, args, opts)
		},
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&opts.again, "again", false, "import sessions that differ from the store's as new sessions")
	cmd.Flags().BoolVar(&opts.dry, "dry-run", false, "list what would be imported, change nothing")
	cmd.Flags().BoolVar(&opts.strict, "strict", false, "exit with code 1 if a recording has unreadable records")
	cmd.Flags().StringVar(&opts.project, "project", "", "`folder` that the sessions belong to, instead of the recorded one")
	return cmd
}

// importFlags are the flags of furl import.
type importFlags struct {
	again, dry, strict bool
	project            string
}

// recordings yields the recordings of stores of furl, then those of other files and folders.
func recordings(ctx context.Context, paths []string) iter.Seq2[*transcript.Recording, error] {
	return func(yield func(*transcript.Recording, error) bool) {
		var others []string
		for _, path := range paths {
			if !sqlite.IsStore(path) {
				others = append(others, path)
				continue
			}
			from, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for rec, err := range recorded.Stored(ctx, path, from) {
				if !yield(rec, err) {
					_ = from.Close() // it was only read
					return
				}
			}
			_ = from.Close()
		}
		reader := transcript.Reader{Counter: token.O200k(), Bodies: true}
		for rec, err := range recorded.ParentsFirst(reader.Walk(others...), reader.ReadFile) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

func imports(f *cmdline.StoreFlags, cmd *cobra.Command, paths []string, o importFlags) (err error) {
	membudget.SoftLimit(membudget.CommandMemory)
	ctx := cmd.Context()
	store, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	progress := cmdline.NewBar(cmd.ErrOrStderr(), f.Json)
	defer progress.Clear()
	im := &recorded.Importer{Store: store, Again: o.again, Dry: o.dry}
	if o.project != "" {
		if im.Project, err = recorded.FolderNamed(o.project); err != nil {
			return err
		}
	}
	var faults []error
	var skipped, stores []string // files of folders that are not recordings
	var done []recorded.Imported
	var damage []string // a line for each damaged file
	files, unreadable := 0, 0
	for rec, err := range recordings(ctx, paths) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if others := (*transcript.UnknownFilesError)(nil); errors.As(err, &others) {
			for _, name := range others.Files {
				if sqlite.IsStore(name) {
					stores = append(stores, name)
				} else {
					skipped = append(skipped, name)
				}
			}
			continue
		}
		if err != nil {
			faults = append(faults, recorded.NoFile(err))
			continue
		}
		files++
		progress.Say(fmt.Sprintf("file %d, %s", files, cmdline.Label(filepath.Base(rec.File))))
		if d := rec.Damage(); d != "" {
			damage = append(damage, cmdline.Label(rec.File)+": "+cmdline.Printable(d))
			unreadable += rec.Unreadable()
		}
		for i, s := range rec.Sessions {
			line, err := im.Session(ctx, rec, s)
			if err != nil {
				return fmt.Errorf("import %s: %w", rec.File, err)
			}
			if i == 0 { // they are the file's, not each session's
				line.Skipped, line.Notes = rec.Unreadable(), rec.Notes
			}
			done = append(done, line)
		}
	}
	if !o.dry {
		progress.Say("indexing")
		for _, tenant := range append([]furl.Tenant{tenants.Local}, im.Tenants...) {
			if err := recall.NewIndexer(store, nil).CatchupTenant(ctx, tenant); err != nil {
				return err
			}
		}
		if err := embed(f, ctx, store); err != nil {
			faults = append(faults, err) // the sessions are imported nevertheless
		}
	}
	progress.Clear()
	if f.Json {
		if done == nil {
			done = []recorded.Imported{}
		}
		err = cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"imported": done})
	} else {
		printImported(cmd.OutOrStdout(), done)
		for _, d := range damage {
			fmt.Fprintf(cmd.ErrOrStderr(), "furl: note: %s\n", d)
		}
		if len(done)+len(faults) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "No recordings found.")
		}
		for _, name := range stores {
			fmt.Fprintf(cmd.ErrOrStderr(), "furl: note: %s is a store of furl; to join it with this one, name it: furl import %s\n", cmdline.Label(name), visible.QuoteArg(name))
		}
		if n := len(skipped); n > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "furl: note: skipped %s in unknown formats, such as %s\n", numbers.Count(n, "file"), cmdline.Label(skipped[0]))
		}
	}
	if o.strict {
		faults = append(faults, recorded.Strictly(unreadable))
	}
	return errors.Join(append(faults, err)...)
}

// embed computes the vectors of new messages if the configuration has embeddings.
func embed(f *cmdline.StoreFlags, ctx context.Context, store storage.Store) error {
	c, _, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return err
	}
	v, err := workspace.VectorsOf(store, c)
	if v == nil || err != nil {
		return err
	}
	return v.CatchupTenant(ctx, tenants.Local)
}

func printImported(w io.Writer, done []recorded.Imported) {
	t := cmdline.NewTable(w, cmdline.Text("session"), cmdline.Text("title"), cmdline.Text("result"), cmdline.Number("messages"), cmdline.Number("new records"))
	counts := map[string]int{}
	for _, l := range done {
		counts[l.Result]++
		if l.Result == recorded.ImportedNothing && len(done) > 20 {
			continue
		}
		result := l.Result
		if result == recorded.ImportedNot {
			result = "skipped"
		}
		t.Add(string(l.Session), cmdline.Truncate(l.Title, 40), result, numbers.Thousands(l.Messages), numbers.Thousands(l.Added))
	}
	t.Shrink("title", 12)
	t.Shrink("session", 12)
	if len(t.Rows) > 0 {
		t.Print()
	}
	if len(done) > 0 {
		cmdline.PrintWrapped(w, importedWords(len(done), counts), cmdline.Width(w))
	}
}

// importedWords says how many sessions were imported, updated and skipped.
func importedWords(n int, counts map[string]int) string {
	var parts []string
	for _, r := range []struct{ result, words string }{
		{recorded.ImportedNew, "imported"}, {recorded.ImportedDry, "would be imported or updated"}, {recorded.ImportedMore, "updated"}, {recorded.ImportedNothing, "unchanged"}, {recorded.ImportedNot, "skipped"},
	} {
		switch of := counts[r.result]; of {
		case 0:
		case n:
			parts = append(parts, r.words)
		default:
			parts = append(parts, numbers.Thousands(of)+" "+r.words)
		}
	}
	sep := ": "
	if len(parts) == 1 {
		sep = " "
	}
	words := numbers.Count(n, "session") + sep + strings.Join(parts, ", ")
	switch counts[recorded.ImportedNot] {
	case 0:
		return words
	case 1:
		return words + ", because it differs from the store's; --again imports it as a new session"
	}
	return words + ", because they differ from the store's; --again imports them as new sessions"
}
