package storecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// The formats of furl status.
const (
	statusText   = "text"
	statusJSON   = "json"
	statusClaude = "claude"
)

func statusFormats() []string { return []string{statusText, statusJSON, statusClaude} }

// StatusCommand returns furl status.
func StatusCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var name, tenant, format, after string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the context and the savings of a session",
		Long: `Shows how full the context of a session is, what is hidden, and what furl has saved
in it, as of its newest request. It reads no messages, so it is fast enough for a
status line. It looks at the sessions of all tenants of a gateway; --tenant selects
one of them.

--format claude is for Claude Code's statusLine: it reads Claude Code's JSON from
standard input, finds its session, and prints one line. furl run -- claude sets it
up. --after runs your own status line's command first and prints furl's after it.`,
		Example: `  furl status
  furl status --session 01jd5 --format json
  furl status --format claude --after ~/.claude/statusline.sh`,
		Args: cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Json {
				format = statusJSON
			}
			w := cmd.OutOrStdout()
			switch format {
			case statusClaude:
				return statusLine(&f, cmd, tenant, name, after)
			case statusText, statusJSON:
			default:
				return cmdline.BadUsage("invalid --format %q: choose one of %s", format, strings.Join(statusFormats(), ", "))
			}
			if after != "" {
				return cmdline.BadUsage("--after requires --format claude")
			}
			s, err := statusOf(&f, cmd.Context(), tenant, name, "")
			if err != nil {
				return err
			}
			if format == statusJSON {
				return cmdline.PrintJSON(w, s)
			}
			printStatus(&f, w, s)
			return nil
		},
	}
	f.Add(cmd)
	cmd.Flags().StringVar(&name, "session", "", "`id` of the session, furl's or the agent's, or its beginning (default the newest session with requests)")
	cmd.Flags().StringVar(&tenant, "tenant", "", "only sessions of this `tenant` of a gateway (see furl tenants; default all)")
	cmd.Flags().StringVar(&format, "format", statusText, "output `format`: "+strings.Join(statusFormats(), ", "))
	cmd.Flags().StringVar(&after, "after", "", "`command` whose output is printed first, with --format claude")
	cmdline.Complete(cmd, "format", statusFormats)
	return cmd
}

// status is what furl status shows.
type status struct {
	Session furl.SessionID `json:"session"`
	Tenant  furl.Tenant    `json:"tenant,omitempty"` // empty: none
	Title   string         `json:"title,omitempty"`
	Agent   string         `json:"agent,omitempty"`
	Model   string         `json:"model,omitempty"`
	Updated time.Time      `json:"updated"`
	Size    int            `json:"context_tokens,omitempty"`
	Window  int            `json:"window,omitempty"` // 0: unknown
	// WindowAssumed: the window is that of similar models.
	WindowAssumed bool `json:"window_assumed,omitempty"`
	Hidden        int  `json:"hidden_tokens,omitempty"`
	// Savings is nil if no request was answered, or a version of furl that does not count
	// requests has recorded the session. Size and Hidden are then unknown.
	Savings    *storage.SavingsLine `json:"savings,omitempty"`
	StoreBytes int64                `json:"store_bytes,omitempty"` // of a file
	// UnknownTypes are types in the newest request that furl does not know.
	UnknownTypes []string `json:"unknown_types,omitempty"`

	uncounted string // why Savings is nil
}

// statusOf reads a session's metadata. The hint is the agent's id of the session, ""
// for any. An empty tenant is any tenant. If no session matches, the error wraps
// storage.ErrNoSession.
func statusOf(f *cmdline.StoreFlags, ctx context.Context, tenant, name, hint string) (s *status, err error) {
	place, err := f.Where()
	if err != nil {
		return nil, err
	}
	var store storage.Store
	var size int64
	if workspace.IsDatabase(place) {
		store, err = postgres.Open(ctx, place, nil)
	} else {
		info, statErr := os.Stat(place)
		if errors.Is(statErr, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w at %s: furl run and furl serve create one", cmdline.ErrNoStore, place)
		}
		if statErr == nil {
			size = info.Size()
		}
		store, err = sqlite.Open(place, &sqlite.Options{ReadOnly: true})
	}
	if err != nil {
		return nil, err
	}
	if store, err = f.Encrypted(store); err != nil {
		return nil, err
	}
	defer workspace.CloseStore(store, &err)
	var among []furl.Tenant
	if tenant != "" {
		one, err := tenants.Named(ctx, store, tenant)
		if err != nil {
			return nil, err
		}
		among = append(among, one)
	} else if among, err = tenants.All(ctx, store); err != nil {
		return nil, err
	}
	found, err := findStatus(ctx, store, among, name, hint)
	if err != nil {
		return nil, err
	}
	info := found.SessionInfo
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return nil, err
	}
	o, err := f.SessionOptions(c, file)
	if err != nil {
		return nil, err
	}
	o.LastWindow = true
	all, err := session.New(store, o)
	if err != nil {
		return nil, err
	}
	s = &status{Session: info.Session, Tenant: found.tenant, Title: info.Title, Agent: agents.Name(info.Client), Model: info.Model, Updated: info.Newest(), StoreBytes: size}
	s.Window, s.WindowAssumed = all.WindowOf(info.Meta)
	if info.Ledger != nil {
		s.Size, s.Hidden, s.UnknownTypes = info.Ledger.Size, info.Ledger.Hidden, info.Ledger.UnknownTypes
		total := info.Ledger.Total()
		s.Savings = &storage.SavingsLine{Savings: total, TokensSaved: total.SavedTokens(), Saved: total.Saved()}
		return s, nil
	}
	answered, err := storage.HasRequests(ctx, store, info.SessionKey)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Imported > 0:
		s.uncounted = "it was imported."
	case info.ForkOf != "":
		s.uncounted = "none was sent since it was copied."
	case answered:
		s.uncounted = "an older version of furl recorded it."
	default:
		s.uncounted = "none was answered."
	}
	return s, nil
}

// recentSessions is how many sessions of each tenant are searched for the newest one
// with requests.
const recentSessions = 50

// tenantSession is a session with its tenant.
type tenantSession struct {
	storage.SessionInfo
	tenant furl.Tenant
}

// findStatus finds a session of the tenants without reading its records: the one with
// the hint, with the name, or the newest one.
func findStatus(ctx context.Context, store storage.Store, among []furl.Tenant, name, hint string) (tenantSession, error) {
	var queries []storage.SessionQuery
	switch {
	case hint != "":
		queries = []storage.SessionQuery{{Hint: hint, Limit: 1}}
	case name == "" || strings.EqualFold(name, session.Latest):
		return newestStatus(ctx, store, among)
	default:
		queries = []storage.SessionQuery{{Hint: name, Limit: 1}, {Prefix: name, Limit: 2}}
	}
	for _, q := range queries {
		var found, exact []tenantSession
		for _, tenant := range among {
			for info, err := range store.Sessions(ctx, tenant, q) {
				if err != nil {
					return tenantSession{}, err
				}
				one := tenantSession{info, tenant}
				if string(info.Session) == name {
					exact = append(exact, one)
				}
				found = append(found, one)
			}
		}
		if len(exact) > 0 {
			found = exact
		}
		for _, one := range found {
			if one.tenant == tenants.Local && len(exact) > 0 {
				return one, nil // as in all other commands
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return tenantSession{}, ambiguousStatus(name, hint, found)
		}
	}
	if name == "" {
		return tenantSession{}, fmt.Errorf("%w with the id %q", storage.ErrNoSession, hint)
	}
	return tenantSession{}, fmt.Errorf("%w %q; furl sessions lists the sessions of the store", storage.ErrNoSession, name)
}

// ambiguousStatus returns the error for several sessions with a name or hint.
func ambiguousStatus(name, hint string, found []tenantSession) error {
	e := &session.AmbiguousError{Name: cmp.Or(name, hint)}
	among := map[furl.Tenant]bool{}
	var words []string
	for _, one := range found {
		e.Sessions = append(e.Sessions, one.SessionInfo)
		if !among[one.tenant] {
			among[one.tenant] = true
			words = append(words, tenants.Word(one.tenant))
		}
	}
	if len(among) > 1 {
		return cmdline.BadUsage("ambiguous session name %q: tenants %s have such sessions; select one with --tenant", e.Name, strings.Join(words, ", "))
	}
	return cmdline.AsUsage(cmdline.ListAmbiguous(e))
}

// newestStatus returns the newest session with requests. If no session has requests, it
// returns the newest one.
func newestStatus(ctx context.Context, store storage.Store, among []furl.Tenant) (newest tenantSession, err error) {
	found := false
	for _, tenant := range among {
		for info, err := range store.Sessions(ctx, tenant, storage.SessionQuery{Limit: recentSessions}) {
			if err != nil {
				return tenantSession{}, err
			}
			counted, was := info.Ledger != nil, newest.Ledger != nil
			if !found || counted && !was || counted == was && info.Newest().After(newest.Newest()) {
				newest, found = tenantSession{info, tenant}, true
			}
			if counted {
				break // the tenant's others are older
			}
		}
	}
	if !found {
		return newest, fmt.Errorf("%w yet: start an agent with furl run -- AGENT", storage.ErrNoSession)
	}
	return newest, nil
}

func printStatus(f *cmdline.StoreFlags, w io.Writer, s *status) {
	head := string(s.Session)
	if s.Title != "" {
		head += fmt.Sprintf(" %q", cmdline.Label(s.Title))
	}
	if s.Model != "" {
		head += ", " + cmdline.Label(s.Model)
	}
	if s.Tenant != "" {
		head += ", tenant " + cmdline.Label(string(s.Tenant))
	}
	cols := cmdline.Width(w)
	cmdline.PrintWrapped(w, head+", "+numbers.Ago(time.Now(), s.Updated), cols)
	if s.Savings == nil {
		words := "No requests are counted for this session: " + s.uncounted
		if s.Tenant == "" { // furl context finds only sessions without a tenant
			words += fmt.Sprintf(" furl context %s shows its context.", s.Session)
		}
		cmdline.PrintWrapped(w, words, cols)
	} else {
		context := "context: " + numbers.Thousands(s.Size)
		if s.Window > 0 {
			context += fmt.Sprintf(" of %s tokens (%s)", numbers.Thousands(s.Window), percentOf(s.Size, s.Window))
			if s.WindowAssumed {
				context += ", a window assumed from similar models"
			}
		} else {
			context += " tokens; the context window of this model is unknown"
		}
		if s.Hidden > 0 {
			context += fmt.Sprintf("; %s hidden, which can be restored", numbers.Thousands(s.Hidden))
		} else {
			context += "; nothing hidden"
		}
		cmdline.PrintWrapped(w, context, cols)
		cmdline.PrintWrapped(w, fmt.Sprintf("%s: %s", numbers.Count(s.Savings.Requests, "request"), cmdline.SavedWords(s.Savings.Savings)), cols)
	}
	if len(s.UnknownTypes) > 0 {
		cmdline.PrintWrapped(w, "furl does not know these types and never hides their steps: "+cmdline.Label(strings.Join(s.UnknownTypes, ", ")), cols)
	}
	if advice := sizeAdvice(f, s.StoreBytes); advice != "" {
		cmdline.PrintWrapped(w, advice, cols)
	}
}

// claudeStatus is what furl reads of the JSON that Claude Code gives its status line.
type claudeStatus struct {
	SessionID string `json:"session_id"`
}

// maxStatusInput is the largest input of a status line that is read, in bytes.
const maxStatusInput = 1 << 20

// statusLine prints the status line of Claude Code. It fails for usage errors only:
// Claude Code shows nothing if the command fails.
func statusLine(f *cmdline.StoreFlags, cmd *cobra.Command, tenant, name, after string) error {
	var input []byte
	if in, ok := cmd.InOrStdin().(*os.File); !ok || !term.IsTerminal(int(in.Fd())) {
		input, _ = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxStatusInput)) // an error is as no input
	}
	w := cmd.OutOrStdout()
	if after != "" {
		c := exec.CommandContext(cmd.Context(), "sh", "-c", after)
		c.Stdin = bytes.NewReader(input)
		theirs, _ := c.Output() // what it has printed counts
		if theirs = bytes.TrimRight(theirs, "\r\n"); len(theirs) > 0 {
			if _, err := w.Write(append(theirs, " | "...)); err != nil {
				return err
			}
		}
	}
	var in claudeStatus
	_ = json.Unmarshal(input, &in) // without an id, the newest session is shown
	s, err := statusOf(f, cmd.Context(), tenant, name, in.SessionID)
	switch {
	case errors.Is(err, storage.ErrNoSession), errors.Is(err, cmdline.ErrNoStore):
		_, err = fmt.Fprintln(w, "furl: no request recorded yet")
		return err
	case err != nil:
		_, err = fmt.Fprintf(w, "furl: %s\n", cmdline.Label(err.Error()))
		return err
	}
	_, err = fmt.Fprintln(w, s.line())
	return err
}

// line is the status on one line.
func (s *status) line() string {
	if s.Savings == nil {
		return "furl: no requests counted for this session"
	}
	parts := []string{"furl " + short(s.Size)}
	if s.Window > 0 {
		parts[0] += fmt.Sprintf(" of %s (%s)", short(s.Window), percentOf(s.Size, s.Window))
	} else {
		parts[0] += " tokens"
	}
	if s.Hidden > 0 {
		parts = append(parts, short(s.Hidden)+" hidden")
	}
	if sum := s.Savings; sum.TokensSaved > 0 {
		saved := fmt.Sprintf("%s tokens saved (%s)", short(sum.TokensSaved), percentOf(sum.TokensSaved, sum.TokensWithout))
		if sum.Saved >= 0.005 {
			saved += ", list price " + numbers.Money(sum.Saved)
		}
		parts = append(parts, saved)
	}
	if s.StoreBytes >= largeStore {
		parts = append(parts, fmt.Sprintf("store %.1f GB, see furl stats", float64(s.StoreBytes)/1e9))
	}
	return strings.Join(parts, " · ")
}

// short formats a number of tokens such as 950, 45k or 1.2M.
func short(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}
