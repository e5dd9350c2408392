package storecmd

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/recall"
)

// getFlags are the flags of furl get.
type getFlags struct {
	cmdline.StoreFlags
	within, lines, chars, out string
	raw, force                bool
}

// GetCommand returns furl get.
func GetCommand(p cmdline.Program) *cobra.Command {
	f := getFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "get [SESSION|FILE] HANDLE",
		Short: "Print a message or result as recorded",
		Long: `Prints a block of a message as it was recorded, even if it is hidden or on an
abandoned branch. Markers, placeholders and search hits contain its handle:
furl:12 is the message in record 12, furl:12.0 its first block. If the handle names
its session, as in the output of furl search, omit SESSION.

On a terminal, control characters are replaced by visible signs. Files and pipes
get the original bytes. --raw prints the JSON of the request or response.`,
		Example: `  furl get latest furl:12
  furl get 01jd5 12 --lines 100-180
  furl get furl:01jd5xk2/12
  furl get session.jsonl 12.1 --raw -o result.json`,
		Args:              cmdline.SessionAnd("a handle such as furl:12, or a handle that names its session; furl search prints handles", 1),
		ValidArgsFunction: cmdline.CompleteSessions(&f.StoreFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	f.AddTenant(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.lines, "lines", "", "print only this `range` of lines, such as 10-20, 10- or 10, from 1")
	fl.StringVar(&f.chars, "bytes", "", "print only this `range` of bytes, such as 0-4095, from 0")
	fl.BoolVar(&f.raw, "raw", false, "print the JSON on the wire instead of the text")
	fl.StringVarP(&f.out, "output", "o", "", "`file` to write (default standard output)")
	fl.BoolVar(&f.force, "force", false, "overwrite an existing file")
	fl.StringVar(&f.within, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	return cmd
}

// run is furl get.
func (f *getFlags) run(cmd *cobra.Command, args []string) (err error) {
	args = cmdline.WithSession(args)
	if h, err := recall.ParseHandle(args[1]); err == nil && f.within == "" && cmdline.IsRecording(args[0]) {
		f.within = string(h.Session)
	}
	t, err := f.Target(cmd, args[0], f.within)
	if err != nil {
		return err
	}
	defer t.Close(&err)
	if _, err := recall.ParseHandle(args[1]); err != nil {
		return cmdline.AsUsage(err)
	}
	got, err := t.Get(t.Own(args[1]))
	if err != nil {
		return t.NoBlock(args[1], err)
	}
	text := got.Text
	if f.raw {
		text = string(got.Raw)
	}
	if text, err = piece(text, f.lines, f.chars); err != nil {
		return err
	}
	if f.Json {
		got.Text = text
		return cmdline.PrintJSON(cmd.OutOrStdout(), got)
	}
	w, finish, err := cmdline.CreateFile(cmd.OutOrStdout(), f.out, f.force)
	if err != nil {
		return err
	}
	if _, terminal := w.(*visible.Writer); terminal && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err = io.WriteString(w, text)
	return finish(err)
}

// piece returns a range of lines or bytes of a text.
func piece(text, lines, chars string) (string, error) {
	switch {
	case lines != "" && chars != "":
		return "", cmdline.BadUsage("--lines and --bytes exclude each other")
	case lines != "":
		all := strings.SplitAfter(text, "\n")
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		from, to, err := parseRange(lines, 1, len(all))
		if err != nil {
			return "", cmdline.BadUsage("invalid --lines %s: %w; the text has %s", lines, err, numbers.Count(len(all), "line"))
		}
		return strings.Join(all[from-1:to], ""), nil
	case chars != "":
		from, to, err := parseRange(chars, 0, len(text)-1)
		if err != nil {
			return "", cmdline.BadUsage("invalid --bytes %s: %w; the text has %s", chars, err, numbers.Count(len(text), "byte"))
		}
		return text[from : to+1], nil
	}
	return text, nil
}

// parseRange parses FROM-TO, FROM- or FROM, both ends included. It limits the end to
// last.
func parseRange(s string, first, last int) (from, to int, err error) {
	a, b, dash := strings.Cut(s, "-")
	from, err = strconv.Atoi(a)
	to = from
	if dash {
		to = last
	}
	if b != "" && err == nil {
		to, err = strconv.Atoi(b)
	}
	switch {
	case err != nil:
		return 0, 0, errors.New("expected a range such as 10-20, 10- or 10")
	case from < first || to < from || from > last:
		return 0, 0, fmt.Errorf("expected a range within %d-%d", first, last)
	}
	return from, min(to, last), nil
}
