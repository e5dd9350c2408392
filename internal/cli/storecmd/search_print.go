package storecmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/sessionlist"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// print prints hits, best first, each below the session that it is of.
func (s *searched) print(ctx context.Context, w io.Writer, query string, hits []session.Hit) error {
	color, cols := cmdline.Styled(w), cmdline.Width(w)
	heads, err := s.sessions(ctx)
	if err != nil {
		return err
	}
	last := furl.SessionID("")
	if other := hits[0].Query; other != "" {
		fmt.Fprintf(w, "Nothing found for %s. Results for %s:\n", cmdline.Label(strconv.Quote(query)), cmdline.Label(strconv.Quote(other)))
	}
	for i := range hits {
		h := &hits[i]
		in, ok := heads[h.Session]
		if !ok {
			continue // deleted meanwhile
		}
		if h.Session != last {
			head := in.line()
			if cols > 0 {
				head = cmdline.Truncate(head, cols)
			}
			fmt.Fprintln(w, cmdline.Style(color, cmdline.Bold, head))
			last = h.Session
		}
		printHit(w, h, in.handle(h), color, cols)
	}
	how := "furl get HANDLE"
	if s.file != "" {
		how = "furl get " + cmdline.Label(s.file) + " HANDLE"
	}
	fmt.Fprintln(w, cmdline.Style(color, cmdline.Faint, how+" prints the original of a hit."))
	return nil
}

func printHit(w io.Writer, h *session.Hit, handle string, color bool, cols int) {
	var about []string
	if !h.Time.IsZero() {
		about = append(about, h.Time.Local().Format("2006-01-02 15:04"))
	}
	what := h.Kind
	if h.Tool != "" {
		what += " of " + h.Tool
	} else {
		what = string(h.Role) + " " + what
	}
	about = append(about, what)
	switch {
	case h.OffPath:
		about = append(about, "other branch")
	case h.Hidden:
		about = append(about, "hidden")
	}
	text := cmdline.Label(strings.Join(about, ", "))
	if cols > 0 {
		text = cmdline.Truncate(text, max(cols-4-len(handle), 20))
	}
	fmt.Fprintf(w, "  %s  %s\n", cmdline.Style(color, cmdline.Bold, handle), cmdline.Style(color, cmdline.Faint, text))
	if n := h.Before; n != nil {
		printExcerpt(w, "before, "+string(n.Role)+": "+n.Text, cols)
	}
	printExcerpt(w, h.Excerpt, cols)
	if n := h.After; n != nil {
		printExcerpt(w, "after, "+string(n.Role)+": "+n.Text, cols)
	}
}

func printExcerpt(w io.Writer, excerpt string, cols int) {
	for line := range strings.Lines(excerpt) {
		for _, part := range cmdline.Wrap(cmdline.Label(strings.TrimRight(line, "\n")), max(cols-4, 0)) {
			fmt.Fprintf(w, "    %s\n", part)
		}
	}
}

// foundIn describes the session of a hit.
type foundIn struct {
	storage.Meta
	id    furl.SessionID // shortened, but unique
	named bool           // handles name the session
}

// sessions describes the sessions that are searched.
func (s *searched) sessions(ctx context.Context) (map[furl.SessionID]foundIn, error) {
	var list []storage.SessionInfo
	for info, err := range s.all.List(ctx, storage.SessionQuery{}) {
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	short := sessionlist.ShortIDs(list)
	found := make(map[furl.SessionID]foundIn, len(list))
	for _, info := range list {
		found[info.Session] = foundIn{info.Meta, furl.SessionID(short[info.Session]), s.file == "" || s.one == nil}
	}
	return found, nil
}

// line describes the session in one line: short id, agent, title.
func (in *foundIn) line() string {
	parts := []string{string(in.id)}
	for _, part := range []string{agents.Name(in.Client), in.Title} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return cmdline.Label(strings.Join(parts, "  "))
}

// handle returns the handle of a hit, with the short id of its session where furl get
// needs it. The only block of a message needs no number.
func (in *foundIn) handle(h *session.Hit) string {
	handle := recall.HandleOf(h.Pos)
	if h.Whole {
		handle.Block = -1
	}
	if in.named {
		handle.Session = in.id
	}
	return handle.String()
}

// printNone says what was searched without a result, and what else to try.
func (f *searchFlags) printNone(cmd *cobra.Command, query, first string, in *searched) error {
	sessions := 0
	for _, err := range in.all.List(cmd.Context(), storage.SessionQuery{}) {
		if err != nil {
			return err
		}
		sessions++
	}
	where := numbers.Count(sessions, "session")
	switch {
	case in.file != "":
		where = cmdline.Label(in.file)
	case in.one != nil:
		where = "session " + string(in.one.ID())
	}
	if part := map[string]string{"hidden": "the hidden parts", "visible": "the visible parts", "path": "the current branch", "branches": "the other branches"}[f.scope]; part != "" {
		where = part + " of " + where
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "Nothing found for %s in %s.\n", cmdline.Label(strconv.Quote(query)), where)
	for _, hint := range f.hints(first, in, sessions) {
		fmt.Fprintf(w, "%s\n", hint)
	}
	return nil
}

// hints says what to try when nothing was found.
func (f *searchFlags) hints(first string, in *searched, sessions int) (hints []string) {
	if sessions == 0 {
		return []string{"Run furl import to import the sessions of your agents."}
	}
	if f.session == "" && (first == session.Latest || strings.HasSuffix(first, ".jsonl")) {
		hints = append(hints, fmt.Sprintf("All arguments are search words. To search one session, use --session %s.", cmdline.Label(first)))
	}
	if f.hidden {
		hints = append(hints, "To search all of each session, omit --hidden.")
	} else if f.scope != "" && f.scope != "everywhere" {
		hints = append(hints, "To search all of each session, omit --in.")
	}
	for _, filter := range []struct {
		name string
		set  bool
	}{
		{"role", f.roles != nil}, {"tool", f.tools != nil}, {"kind", f.kinds != nil}, {"since", f.since != ""}, {"before", f.before != ""},
	} {
		if filter.set {
			hints = append(hints, fmt.Sprintf("To search more, omit --%s.", filter.name))
		}
	}
	if in.one != nil && in.file == "" {
		hints = append(hints, "To search all sessions, omit --session.")
	}
	return append(hints, "Try other words, such as names, paths or identifiers.")
}
