package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/storage"
)

// listCache keeps the list of sessions, because each call needs it: until the store
// changes, or for listAge if the store cannot tell.
type listCache struct {
	mu      sync.Mutex
	at      time.Time
	version uint64
	infos   []storage.SessionInfo // newest first
	byID    map[furl.SessionID]*storage.SessionInfo
}

const listAge = time.Second

// infos returns all sessions, newest first, and the same by their ids. The caller must
// not change them.
func (s *Server) infos(ctx context.Context) ([]storage.SessionInfo, map[furl.SessionID]*storage.SessionInfo, error) {
	c := &s.list
	c.mu.Lock()
	defer c.mu.Unlock()
	begin := time.Now()
	kept := begin.Sub(c.at) < listAge
	version := c.version
	if store, ok := s.all.Store().(storage.Versioned); ok {
		var err error
		if version, err = store.Version(ctx); err != nil {
			return nil, nil, err
		}
		kept = !c.at.IsZero() && version == c.version
	}
	if kept {
		return c.infos, c.byID, nil
	}
	var infos []storage.SessionInfo
	for info, err := range s.all.List(ctx, storage.SessionQuery{}) {
		if err != nil {
			return nil, nil, fmt.Errorf("list sessions: %w", err)
		}
		infos = append(infos, info)
	}
	byID := make(map[furl.SessionID]*storage.SessionInfo, len(infos))
	for i := range infos {
		byID[infos[i].Session] = &infos[i]
	}
	c.at, c.version, c.infos, c.byID = begin, version, infos, byID
	return infos, byID, nil
}

// Names that tools accept in place of a session's id and of a folder.
const (
	currentSession = "current"
	allProjects    = "all"
)

// find returns the session with a name: its id or the agent's own id of it, a unique
// beginning of one of these, or "current" or "" for the newest session of the project.
func (s *Server) find(ctx context.Context, name, project string) (*storage.SessionInfo, error) {
	infos, byID, err := s.infos(ctx)
	if err != nil {
		return nil, s.failure("the search for the session", err)
	}
	info, err := findIn(infos, byID, name, project)
	if found, ok := ctx.Value(foundKey{}).(*furl.SessionID); ok && err == nil {
		*found = info.Session
	}
	return info, err
}

func findIn(infos []storage.SessionInfo, byID map[furl.SessionID]*storage.SessionInfo, name, project string) (*storage.SessionInfo, error) {
	name = strings.TrimSpace(name)
	if name == "" || name == currentSession {
		for i := range infos {
			if infos[i].Parent == "" && inside(infos[i].Project, project) {
				return &infos[i], nil
			}
		}
		if project == "" {
			return nil, missing(storage.ErrNoSession, "the current session is unknown, because the client did not name its folder: pass a session from %s", toolList)
		}
		return nil, missing(storage.ErrNoSession, "no session is recorded for %s: pass a session from %s with project %q", project, toolList, allProjects)
	}
	if info := byID[furl.SessionID(name)]; info != nil {
		return info, nil
	}
	var found []*storage.SessionInfo
	for i := range infos {
		own := agents.OwnID(infos[i].Hint, name)
		if own == name {
			return &infos[i], nil
		}
		if strings.HasPrefix(string(infos[i].Session), name) || strings.HasPrefix(own, name) {
			found = append(found, &infos[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, missing(storage.ErrNoSession, "no session %.80q: %s lists sessions", name, toolList)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%.80q is the beginning of %d session ids: pass more of it", name, len(found))
}

// missingError says what does not exist, and what to do.
type missingError struct {
	text  string
	cause error
}

func (e *missingError) Error() string { return e.text }
func (e *missingError) Unwrap() error { return e.cause }

func missing(cause error, format string, args ...any) error {
	return &missingError{fmt.Sprintf(format, args...), cause}
}

// inside reports whether a folder is a project or in it. No folder is inside "".
func inside(folder, project string) bool {
	if project == "" {
		return false
	}
	rest, ok := strings.CutPrefix(folder, strings.TrimRight(project, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// folderNamed returns the folder that the argument of a tool names: an absolute path, or
// the name of a project's folder; and "" for "" and "all".
func folderNamed(name string, infos []storage.SessionInfo) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" || name == allProjects {
		return "", nil
	}
	if folder := agents.Folder(name); folder != "" {
		return folder, nil
	}
	for i := range infos {
		if p := strings.ReplaceAll(infos[i].Project, `\`, "/"); p != "" && path.Base(p) == name {
			return infos[i].Project, nil
		}
	}
	return "", fmt.Errorf("no session is recorded for a folder named %.80q: pass an absolute path, or %q", name, allProjects)
}

// project returns the folder that the client works in: its first root, else the folder
// in which the server was started.
func (s *Server) project(ctx context.Context, ss *mcp.ServerSession) string {
	if folder := s.roots.of(ctx, ss); folder != "" {
		return folder
	}
	return s.o.Project
}

// rootCache keeps the first root of each client.
type rootCache struct {
	mu    sync.Mutex
	roots map[*mcp.ServerSession]string
}

// maxRoots bounds the clients whose roots are kept, and rootWait how long one may take
// to name them.
const (
	maxRoots = 1000
	rootWait = 2 * time.Second
)

// of asks a client for its roots, once. Newer clients have none: roots were removed
// from the protocol with revision 2026-07-28.
func (c *rootCache) of(ctx context.Context, ss *mcp.ServerSession) string {
	if ss == nil {
		return ""
	}
	p := ss.InitializeParams()
	//lint:ignore SA1019 clients of earlier revisions have roots
	if p == nil || p.Capabilities == nil || p.Capabilities.RootsV2 == nil || p.ProtocolVersion >= "2026-07-28" {
		return ""
	}
	c.mu.Lock()
	folder, known := c.roots[ss]
	c.mu.Unlock()
	if known {
		return folder
	}
	ctx, cancel := context.WithTimeout(ctx, rootWait)
	defer cancel()
	//lint:ignore SA1019 clients of earlier revisions have roots
	list, err := ss.ListRoots(ctx, nil)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ""
	}
	if err == nil {
		for _, r := range list.Roots {
			if u, err := url.Parse(r.URI); err == nil && u.Scheme == "file" {
				if folder = agents.Folder(folderOf(u.Path)); folder != "" {
					break
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roots == nil || len(c.roots) >= maxRoots {
		c.roots = make(map[*mcp.ServerSession]string)
	}
	c.roots[ss] = folder
	return folder
}

// folderOf returns the folder of the path of a file URL: on Windows that is /C:/folder.
func folderOf(p string) string {
	if len(p) > 3 && p[0] == '/' && p[2] == ':' {
		return p[1:]
	}
	return p
}

// changed forgets the roots of a client.
func (c *rootCache) changed(_ context.Context, req *mcp.RootsListChangedRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.roots, req.Session)
}

// named returns a description of a session for models.
func named(info *storage.SessionInfo) string {
	parts := []string{quotedTitle(info.Title)}
	for _, part := range []string{agents.Name(info.Client), info.Project} {
		if part != "" {
			parts = append(parts, oneLine(part, 120))
		}
	}
	if at := info.Newest(); !at.IsZero() {
		parts = append(parts, at.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}
