package mcpserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/storage"
)

type listInput struct {
	Project string `json:"project,omitempty" jsonschema:"Only sessions of this folder; all for every folder. Default: the current folder."`
	Words   string `json:"words,omitempty" jsonschema:"Only sessions whose title has these words or whose id begins so."`
	Limit   int    `json:"limit,omitempty" jsonschema:"Sessions to return, 1 to 50; default 15."`
	Cursor  string `json:"cursor,omitempty" jsonschema:"From the previous result, for more sessions."`
}

// Limits of a list.
const (
	defaultListed = 15
	maxListed     = 50
)

func (s *Server) sessions(ctx context.Context, req *mcp.CallToolRequest, in listInput) ([]string, error) {
	infos, _, err := s.infos(ctx)
	if err != nil {
		return nil, s.failure("listing the sessions", err)
	}
	folder, err := folderNamed(in.Project, infos)
	if err != nil {
		return nil, err
	}
	if in.Project == "" {
		folder = s.project(ctx, req.Session)
	}
	limit := min(max(in.Limit, 0), maxListed)
	if limit == 0 {
		limit = defaultListed
	}
	from := 0
	if in.Cursor != "" {
		if from, err = strconv.Atoi(in.Cursor); err != nil || from < 0 {
			return nil, errCursor
		}
	}
	found, elsewhere := 0, 0
	var shown []*storage.SessionInfo
	for i := range infos {
		info := &infos[i]
		if info.Parent != "" || !has(info, in.Words) {
			continue
		}
		if folder != "" && !inside(info.Project, folder) {
			elsewhere++
			continue
		}
		if found++; found > from && len(shown) < limit {
			shown = append(shown, info)
		}
	}
	return []string{listText(shown, folder, found, elsewhere, from)}, nil
}

// has reports whether a session's title has all words, or its id begins with them.
func has(info *storage.SessionInfo, words string) bool {
	words = strings.TrimSpace(words)
	if words == "" || strings.HasPrefix(string(info.Session), words) || strings.HasPrefix(agents.OwnID(info.Hint, words), words) {
		return true
	}
	title := strings.ToLower(info.Title)
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(title, word) {
			return false
		}
	}
	return true
}

func listText(shown []*storage.SessionInfo, folder string, found, elsewhere, from int) string {
	var b strings.Builder
	where := ""
	if folder != "" {
		where = " in " + oneLine(folder, 200)
	}
	if len(shown) == 0 {
		fmt.Fprintf(&b, "No recorded sessions%s.", where)
		if elsewhere > 0 {
			fmt.Fprintf(&b, " %d in other folders: pass project %q.", elsewhere, allProjects)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "Recorded sessions%s, newest first: id, title (quoted from the session), agent, folder, time of the last message, messages.\n\n", where)
	for _, info := range shown {
		fmt.Fprintf(&b, "- %s: %s, %d messages\n", info.Session, named(info), info.Messages)
	}
	if next := from + len(shown); next < found {
		fmt.Fprintf(&b, "\n%d more: pass cursor \"%d\".\n", found-next, next)
	}
	if elsewhere > 0 {
		fmt.Fprintf(&b, "\n%d in other folders: pass project %q.\n", elsewhere, allProjects)
	}
	return b.String()
}

type statusInput struct {
	Session string `json:"session,omitempty" jsonschema:"Id of a session. Default: the current one, the newest of the current folder."`
}

func (s *Server) status(ctx context.Context, req *mcp.CallToolRequest, in statusInput) ([]string, error) {
	info, err := s.find(ctx, in.Session, s.project(ctx, req.Session))
	if err != nil {
		return nil, err
	}
	one, err := s.all.Open(ctx, info.Session)
	if err != nil {
		return nil, s.failure("opening the session", err)
	}
	u := one.Context("")
	var b strings.Builder
	fmt.Fprintf(&b, "Session %s: %s\n", info.Session, named(info))
	fmt.Fprintf(&b, "Context at its newest message: about %d tokens", u.Size)
	if u.Limit > 0 {
		fmt.Fprintf(&b, " of %d (%.1f%%)", u.Limit, u.Percentage)
	}
	if u.Model != "" {
		fmt.Fprintf(&b, ", model %s", oneLine(u.Model, 80))
	}
	fmt.Fprintf(&b, ".\n%d messages, %d shown to the model.", u.Messages, u.Shown)
	if u.Hidden > 0 {
		fmt.Fprintf(&b, " Of about %d recorded tokens, %d are hidden; a search finds them.", u.Recorded, u.Hidden)
	}
	b.WriteString("\n")
	for _, p := range u.Parts {
		if p.Tokens > 0 {
			fmt.Fprintf(&b, "- %s: %d\n", p.Name, p.Tokens)
		}
	}
	return []string{b.String()}, nil
}
