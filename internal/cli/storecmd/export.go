package storecmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/transcript"
)

// exportFlags are the flags of furl export.
type exportFlags struct {
	viewFlags
	format, out string
	opts        transcript.ExportOptions
	atRecord    int
	force       bool
}

// ExportCommand returns furl export.
func ExportCommand(p cmdline.Program) *cobra.Command {
	f := exportFlags{viewFlags: viewFlags{StoreFlags: cmdline.NewStoreFlags(p)}}
	cmd := &cobra.Command{
		Use:   "export SESSION|FILE",
		Short: "Export a session to a file",
		Long: `Writes a session as ` + strings.Join(exportFormats(), ", ") + `.
The format furl keeps everything: furl import restores every record, byte for byte.
--view writes what the model sees, with --at-request what it saw at an earlier
request, and with --policy what it would have seen under that policy.
The others have the conversation of one branch; notes on standard error say what
they leave out. --format openai means the OpenAI format in which the session was recorded. On a
terminal, control characters are replaced by visible signs; files and pipes get
the original bytes. --format roo --output FOLDER writes a folder with three files: FOLDER
is the extension's folder of tasks.`,
		Example: `  furl export 01jd5 -o session.furl.jsonl
  furl export latest --format markdown | less
  furl export session.jsonl --format anthropic --view      what the model sees
  furl export latest -f anthropic --view --at-request 57   what it saw then
  furl export 01jd5 --format html -o session.html
  furl export 01jd5 --structure -o shared.html             no texts, no names
  furl export 01jd5 --format roo -o tasks                  a task for Roo Code`,
		Args:              cmdline.OneSession,
		ValidArgsFunction: cmdline.CompleteSessions(&f.StoreFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.StoreFlags.Add(cmd)
	f.AddTenant(cmd)
	f.Pricing.Add(pflag.NewFlagSet("", pflag.ContinueOnError)) // the defaults
	fl := cmd.Flags()
	fl.StringVarP(&f.format, "format", "f", "", "`format`: "+strings.Join(exportFormats(), ", ")+" (default by the file name, else furl)")
	fl.StringVarP(&f.out, "output", "o", "", "`file` to write (default standard output)")
	fl.BoolVar(&f.force, "force", false, "overwrite an existing file")
	fl.BoolVar(&f.opts.View, "view", false, "export what the model sees instead of the transcript")
	fl.IntVar(&f.at, "at-request", 0, "with --view: `number` of the request, from 1 (default the current state)")
	fl.StringVar(&f.policy, "policy", "", "with --view: policy `name` to replay instead of what was recorded")
	fl.BoolVar(&f.opts.Structure, "structure", false, "export roles and sizes only, no texts or names (html)")
	fl.IntVar(&f.atRecord, "at-record", 0, "`number` of the last record to export (default the newest)")
	fl.SetNormalizeFunc(cmdline.Renamed("at", "at-record"))
	fl.StringVar(&f.session, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	cmdline.Complete(cmd, "format", exportFormats)
	cmdline.Complete(cmd, "policy", p.PolicyNames)
	return cmd
}

// run is furl export.
func (f *exportFlags) run(cmd *cobra.Command, args []string) (err error) {
	if err := f.checkNumbers(cmd); err != nil {
		return err
	}
	atRequest := f.at != 0 || f.policy != ""
	switch {
	case atRequest && !f.opts.View:
		return cmdline.BadUsage("--at-request and --policy select a view: add --view, or use --at-record for the transcript up to a record")
	case atRequest && f.atRecord != 0:
		return cmdline.BadUsage("--at-record %d: omit it with --at-request and --policy", f.atRecord)
	}
	t, err := f.Target(cmd, args[0], f.session)
	if err != nil {
		return err
	}
	defer t.Close(&err)
	if f.out == "-" {
		f.out = ""
	}
	if f.format == "" {
		if f.format = formatOf(f.out); f.opts.Structure && f.out == "" {
			f.format = "html"
		}
	}
	f.opts.At = furl.Seq(f.atRecord)
	f.opts.Model = t.Model(t.Meta().Model)
	progress := cmdline.NewBar(cmd.ErrOrStderr(), f.Json || f.out == "")
	f.opts.Progress = func(done, total int) { progress.Say(fmt.Sprintf("%d of %d messages", done, total)) }
	s := t.Wire()
	if s.Contents, err = t.Contents(cmd.Context(), furl.Seq(s.Log.Len())); err != nil {
		return err
	}
	if atRequest {
		f.stored = t.File == ""
		in, err := f.atRequest(cmd, t)
		if err != nil {
			return err
		}
		in.export(s, &f.opts, f.format)
	}
	done, err := (*transcript.Exported)(nil), error(nil)
	if f.format == "roo" && f.out != "" {
		var path string
		if path, done, err = transcript.ExportTask(cmd.Context(), f.out, s, &f.opts, f.force); err == nil {
			f.out = path
		}
	} else {
		var w io.Writer
		var finish func(error) error
		if w, finish, err = cmdline.CreateFile(cmd.OutOrStdout(), f.out, f.force); err != nil {
			return err
		}
		done, err = transcript.Export(cmd.Context(), w, f.format, s, &f.opts)
		err = finish(err)
	}
	progress.Clear()
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w; overwrite it with --force", err)
	}
	if err != nil {
		unknown := (*transcript.UnknownExportError)(nil)
		if errors.As(err, &unknown) {
			return cmdline.AsUsage(err)
		}
		return err
	}
	for _, n := range done.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "furl: note:", cmdline.Label(n))
	}
	if f.out == "" {
		return nil
	}
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{
			"session": t.ID(), "file": f.out, "format": done.Format, "messages": done.Messages, "bytes": done.Bytes, "notes": append([]string{}, done.Notes...),
		})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s as %s\n", f.out, numbers.Count(done.Messages, "message"), numbers.Bytes(done.Bytes), done.Format)
	return nil
}

// export makes the options export what the model saw at a request.
func (in *inspection) export(s *transcript.Session, opts *transcript.ExportOptions, format string) {
	s.Log, opts.Shown = in.log, in.View
	readable := func(f transcript.ExportFormat) bool { return f.Name == format && f.Readable }
	if in.sent == nil || slices.ContainsFunc(transcript.ExportFormats(), readable) {
		return
	}
	opts.Shown, s.Preamble, s.Model = in.sent, in.preamble, in.requested
}

func exportFormats() []string {
	var names []string
	for _, f := range transcript.ExportFormats() {
		names = append(names, f.Name)
	}
	return names
}

// formatOf returns the format for a file name.
func formatOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".md", ".markdown":
		return "markdown"
	case ".html", ".htm":
		return "html"
	}
	return "furl"
}
