package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// searchFlags are the flags of furl search.
type searchFlags struct {
	storeFlags
	all                 bool
	scope, within       string
	roles, tools, kinds []string
	since, before       string
	limit, excerpt      int
}

var searchScopes = map[string]session.Scope{
	"hidden": session.Hidden, "visible": session.Visible, "path": session.Path, "branches": session.OffPath, "everywhere": session.Everywhere,
}

func searchCommand(p program) *cobra.Command {
	f := searchFlags{storeFlags: storeFlags{program: p}}
	cmd := &cobra.Command{
		Use:   "search [SESSION|FILE] WORDS",
		Short: "Search sessions for words, identifiers and paths",
		Long: `Finds text, tool calls and results, best matches first. It matches words,
identifiers and paths, whole or by their parts. Each hit has a handle for furl get,
which prints the original.

By default it searches what is hidden in the session. --in searches other parts,
--all searches all sessions of the store.`,
		Example: `  furl search latest "rate limit"
  furl search --all parseConfig
  furl search 01jd5 config.go --in everywhere --tool Read
  furl search session.jsonl "exit status" --in path --kind result --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if want := 2; len(args) != want && !f.all || len(args) != 1 && f.all {
				return badUsage("%s requires a session and the words to find, or --all and the words; quote several words", cmd.CommandPath())
			}
			if strings.TrimSpace(args[len(args)-1]) == "" {
				return badUsage("empty search: expected words to find")
			}
			return positive(cmd, "limit", f.limit)
		},
		ValidArgsFunction: completeSessions(&f.storeFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&f.all, "all", "a", false, "search all sessions of the store")
	fl.StringVar(&f.scope, "in", "", "`scope` of the search: hidden, visible, path (both), branches (abandoned ones), everywhere (default hidden; everywhere with --all)")
	fl.StringSliceVar(&f.roles, "role", nil, "only messages of these `roles`: user, assistant, tool, system")
	fl.StringSliceVar(&f.tools, "tool", nil, "only calls of these `tools` and their results")
	fl.StringSliceVar(&f.kinds, "kind", nil, "only blocks of these `kinds`: text, thinking, call, result")
	fl.StringVar(&f.since, "since", "", "only records since this `time`, such as 7d or 2026-01-31")
	fl.StringVar(&f.before, "before", "", "only records before this `time`")
	fl.IntVar(&f.limit, "limit", 10, "at most this `number` of hits")
	fl.IntVar(&f.excerpt, "excerpt", 240, "about this `number` of characters for each hit")
	fl.StringVar(&f.within, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	complete(cmd, "in", func() []string { return []string{"hidden", "visible", "path", "branches", "everywhere"} })
	complete(cmd, "role", func() []string { return []string{"user", "assistant", "tool", "system"} })
	complete(cmd, "kind", func() []string { return []string{"text", "thinking", "call", "result", "image", "document"} })
	return cmd
}

func (f *searchFlags) run(cmd *cobra.Command, args []string) (err error) {
	o, err := f.options(time.Now())
	if err != nil {
		return err
	}
	query := args[len(args)-1]
	var hits []session.Hit
	if f.all {
		if f.within != "" || f.scope != "" && f.scope != "everywhere" {
			return badUsage("--all searches everywhere: omit --in and --session")
		}
		store, err := f.existing(cmd.Context())
		if err != nil {
			return err
		}
		defer closing(store, &err)
		all, err := f.sessions(store)
		if err != nil {
			return err
		}
		if hits, err = all.Search(cmd.Context(), query, o); err != nil {
			return err
		}
	} else {
		t, err := f.target(cmd, args[0], f.within)
		if err != nil {
			return err
		}
		defer t.close(&err)
		if hits, err = t.Search(cmd.Context(), query, o); err != nil {
			return err
		}
	}
	if f.json {
		return printJSON(cmd.OutOrStdout(), map[string]any{"hits": append([]session.Hit{}, hits...)})
	}
	f.print(cmd.OutOrStdout(), query, hits)
	return nil
}

func (f *searchFlags) options(now time.Time) (o session.SearchOptions, err error) {
	o = session.SearchOptions{Limit: f.limit, Excerpt: f.excerpt, Tools: f.tools}
	if f.limit < 1 || f.limit > 1000 {
		return o, badUsage("invalid --limit %d: expected a number from 1 to 1000", f.limit)
	}
	if f.scope != "" {
		scope, ok := searchScopes[f.scope]
		if !ok {
			return o, badUsage("invalid --in %q: choose hidden, visible, path, branches or everywhere", f.scope)
		}
		o.Scope = scope
	}
	for _, r := range f.roles {
		if !slices.Contains([]string{"user", "assistant", "tool", "system", "developer"}, r) {
			return o, badUsage("invalid --role %q: choose from user, assistant, tool, system, developer", r)
		}
		o.Roles = append(o.Roles, furl.Role(r))
	}
	for _, name := range f.kinds {
		k := furl.KindText
		for k.String() != name {
			if k++; k > furl.KindOpaque {
				return o, badUsage("invalid --kind %q: choose from text, thinking, call, result, image, document, opaque", name)
			}
		}
		o.Kinds = append(o.Kinds, k)
	}
	if o.Since, err = parseTime(f.since, now); err != nil {
		return o, badUsage("--since %s: %w", f.since, err)
	}
	if o.Before, err = parseTime(f.before, now); err != nil {
		return o, badUsage("--before %s: %w", f.before, err)
	}
	return o, nil
}

func (f *searchFlags) print(w io.Writer, query string, hits []session.Hit) {
	color, cols := styled(w), width(w)
	if len(hits) == 0 {
		fmt.Fprintf(w, "Nothing found for %s.\n", label(strconv.Quote(query)))
		if !f.all && f.scope == "" {
			fmt.Fprintln(w, "Only hidden text was searched. To search the whole session, use --in everywhere.")
		}
		return
	}
	for _, h := range hits {
		about := []string{string(h.Role), h.Kind}
		if h.Tool != "" {
			about = append(about, h.Tool)
		}
		if !h.Time.IsZero() {
			about = append(about, h.Time.Local().Format("2006-01-02 15:04"))
		}
		if h.Hidden {
			about = append(about, "hidden")
		}
		if f.all {
			about = append(about, "session "+string(h.Session))
		}
		fmt.Fprintf(w, "%s  %s\n", style(color, bold, h.Handle), style(color, faint, label(strings.Join(about, ", "))))
		for line := range strings.Lines(h.Excerpt) {
			for _, part := range wrap(label(strings.TrimRight(line, "\n")), max(cols-4, 0)) {
				fmt.Fprintf(w, "    %s\n", part)
			}
		}
	}
	how := "furl get SESSION HANDLE"
	if f.all {
		how = "furl get HANDLE"
	}
	fmt.Fprintln(w, style(color, faint, how+" prints the original of a hit."))
}

func getCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var within, lines, chars, out string
	var raw, force bool
	cmd := &cobra.Command{
		Use:   "get [SESSION|FILE] HANDLE",
		Short: "Print a message or result as recorded",
		Long: `Prints a block of a message as it was recorded, even if it is hidden or on an
abandoned branch. Markers, placeholders and search hits contain its handle:
furl:12.0 is the first block of the message in record 12. If the handle names its
session, as in the output of furl search --all, omit SESSION.

On a terminal, control characters are replaced by visible signs. Files and pipes
get the original bytes. --raw prints the JSON of the request or response.`,
		Example: `  furl get latest furl:12.0
  furl get 01jd5 12.0 --lines 100-180
  furl get furl:01jd5xk2/12.0
  furl get session.jsonl 12.0 --raw -o result.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(withSession(args)) != 2 {
				return badUsage("%s requires a session and a handle such as furl:12.0, or a handle that names its session; furl search prints handles", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			args = withSession(args)
			t, err := f.target(cmd, args[0], within)
			if err != nil {
				return err
			}
			defer t.close(&err)
			if _, err := recall.ParseHandle(args[1]); err != nil {
				return usageError{err}
			}
			got, err := t.Get(args[1])
			if err != nil {
				return t.noBlock(args[1], err)
			}
			text := got.Text
			if raw {
				text = string(got.Raw)
			}
			if text, err = piece(text, lines, chars); err != nil {
				return err
			}
			if f.json {
				got.Text = text
				return printJSON(cmd.OutOrStdout(), got)
			}
			w, finish, err := create(cmd.OutOrStdout(), out, force)
			if err != nil {
				return err
			}
			if _, terminal := w.(*printableWriter); terminal && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			_, err = io.WriteString(w, text)
			return finish(err)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&lines, "lines", "", "print only this `range` of lines, such as 10-20, 10- or 10, from 1")
	fl.StringVar(&chars, "bytes", "", "print only this `range` of bytes, such as 0-4095, from 0")
	fl.BoolVar(&raw, "raw", false, "print the JSON on the wire instead of the text")
	fl.StringVarP(&out, "output", "o", "", "`file` to write (default standard output)")
	fl.BoolVar(&force, "force", false, "overwrite an existing file")
	fl.StringVar(&within, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	return cmd
}

// piece returns a range of lines or bytes of a text.
func piece(text, lines, chars string) (string, error) {
	switch {
	case lines != "" && chars != "":
		return "", badUsage("--lines and --bytes exclude each other")
	case lines != "":
		all := strings.SplitAfter(text, "\n")
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		from, to, err := parseRange(lines, 1, len(all))
		if err != nil {
			return "", badUsage("invalid --lines %s: %w; the text has %s", lines, err, plural(len(all), "line"))
		}
		return strings.Join(all[from-1:to], ""), nil
	case chars != "":
		from, to, err := parseRange(chars, 0, len(text)-1)
		if err != nil {
			return "", badUsage("invalid --bytes %s: %w; the text has %s", chars, err, plural(len(text), "byte"))
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

// parseTime parses a time, or an age before now.
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if age, err := parseAge(s); err == nil {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("expected an age such as 7d, or a time such as 2026-01-31 or 2026-01-31T15:04:05Z")
}
