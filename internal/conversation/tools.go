package conversation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/tool"
)

// chatTools are the tools of a chat: those of the working folder, and those of the
// configured MCP servers.
type chatTools struct {
	List []tool.Tool
	// ofServers are the last ones of list.
	ofServers []tool.Tool
	folder    *tool.Folder // nil: --no-tools
	copies    string
}

// openTools opens the tools for a session.
func (o *Options) openTools(dir string, s *session.Session) (*chatTools, error) {
	t := &chatTools{}
	if o.NoTools {
		return t, nil
	}
	var err error
	if t.copies, err = workspace.CopiesOf(s.ID()); err != nil {
		return t, err
	}
	t.folder, err = tool.Open(dir, &tool.Options{Copies: t.copies, Record: func() uint64 { return uint64(s.Info().Records) }})
	if err != nil {
		return t, err
	}
	t.List = t.folder.Tools()
	return t, nil
}

// close ends the tools. Copies of a session without changes are removed.
func (t *chatTools) close() {
	if t == nil || t.folder == nil {
		return
	}
	_ = t.folder.Close() // files are closed after each change
	journal := filepath.Join(t.copies, "journal.jsonl")
	if fi, err := os.Stat(journal); err == nil && fi.Size() == 0 {
		_ = os.RemoveAll(t.copies) // at worst an empty folder stays
		_ = os.Remove(filepath.Dir(t.copies))
	}
}

// RestoreFiles offers to put back the files that tools have changed since a record, and
// says what was done, "" for nothing.
func (t *chatTools) RestoreFiles(ctx context.Context, ask chat.Asker, since furl.Seq) (string, error) {
	if t.folder == nil {
		return "", nil
	}
	changes, err := t.folder.Changes(uint64(since))
	if err != nil || len(changes) == 0 {
		return "", err
	}
	var names, diffs []string
	others := false
	for _, c := range changes {
		names, diffs = append(names, c.Path), append(diffs, c.Diff)
		others = others || c.Others
	}
	if ask == nil {
		return fmt.Sprintf("Files changed since then, which stay as they are: %s.", visible.Text(strings.Join(names, ", "))), nil
	}
	q := chat.Question{
		Title:   fmt.Sprintf("Put back %s that the tools have changed since then?", numbers.Count(len(changes), "file")),
		Diff:    strings.Join(diffs, ""),
		Options: []chat.Option{{Label: "Yes", Key: "y"}, {Label: "No, only the conversation goes back", Key: "n"}},
	}
	if others {
		q.Body = "Some of them were changed by others too:"
		for _, c := range changes {
			if c.Others {
				q.Body += "\n" + c.Path
			}
		}
		q.Options = []chat.Option{
			{Label: "Yes, except those", Key: "y"},
			{Label: "No, only the conversation goes back", Key: "n"},
			{Label: "Yes, all of them", Key: "a"},
		}
	}
	answer, err := ask(ctx, q)
	switch {
	case err != nil:
		return "", ErrCanceled
	case answer.Option == 1:
		return "The files stay as they are.", nil
	}
	skipped, err := t.folder.Restore(changes, answer.Option == 2)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(numbers.Count(len(changes)-len(skipped), "file") + " put back.")
	for _, s := range skipped {
		why := s.Problem
		if why == "" {
			why = "changed by others"
		}
		fmt.Fprintf(&text, " %s stays: %s.", visible.Line(s.Path), visible.Text(why))
	}
	return text.String(), nil
}

// ErrCanceled is the error of a question that the user has canceled.
var ErrCanceled = errors.New("canceled; nothing changes")
