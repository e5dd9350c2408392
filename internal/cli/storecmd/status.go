package storecmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/nextinput"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/quota"
	"github.com/furlhq/furl/internal/status"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
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
		Use:   "status [SESSION]",
		Short: "Show the context and the savings of a session",
		Long: `Shows how full the context of a session is, what is hidden, and what furl has saved
in it, as of its newest request. It reads no messages, so it is fast enough for a
status line. It looks at the sessions of all tenants of a gateway; --tenant selects
one of them.

--format claude is for Claude Code's statusLine: it reads Claude Code's JSON from
standard input, finds its session, and prints one line. furl run -- claude sets it
up. --after runs your own status line's command first and prints furl's after it.`,
		Example: `  furl status
  furl status 01jd5 --format json
  furl status --format claude --after ~/.claude/statusline.sh`,
		Args:              cmdline.AtMost(1),
		ValidArgsFunction: cmdline.CompleteSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				name = args[0]
			}
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
			s, err := status.Of(cmd.Context(), &f.Workspace, tenant, name, "")
			if ambiguous := (*session.AmbiguousError)(nil); errors.As(err, &ambiguous) {
				return cmdline.AsUsage(cmdline.ListAmbiguous(ambiguous))
			}
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

func printStatus(f *cmdline.StoreFlags, w io.Writer, s *status.Status) {
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
		words := "No requests are counted for this session: " + s.Uncounted
		if s.Tenant == "" { // furl context finds only sessions without a tenant
			words += fmt.Sprintf(" furl context %s shows its context.", s.Session)
		}
		cmdline.PrintWrapped(w, words, cols)
		if s.Billed != nil {
			cmdline.PrintWrapped(w, "billed by the recorded usage: "+numbers.Money(*s.Billed), cols)
		}
	} else {
		context := "context: " + numbers.Thousands(s.Size)
		if s.Window > 0 {
			context += fmt.Sprintf(" of %s tokens (%s)", numbers.Thousands(s.Window), cmdline.PercentOf(s.Size, s.Window))
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
		cmdline.PrintWrapped(w, fmt.Sprintf("%s: %s", numbers.Count(s.Savings.Requests, "request"), operation.SavedWords(s.Savings.Savings)), cols)
	}
	if s.Next != nil {
		words := "next message: " + nextinput.Words(s.Next, time.Now())
		if more := nextinput.Explain(s.Next, time.Now()); more != "" {
			words += ". " + cmdline.Label(more)
		}
		cmdline.PrintWrapped(w, words, cols)
	}
	for _, u := range s.Limits {
		words := "limit: " + cmdline.Label(u.String())
		if u.Reached() {
			words += "; requests are refused"
		}
		cmdline.PrintWrapped(w, words, cols)
	}
	for _, words := range planWords(s.Plan, time.Now()) {
		cmdline.PrintWrapped(w, "plan: "+words, cols)
	}
	if len(s.UnknownTypes) > 0 {
		cmdline.PrintWrapped(w, "furl does not know these types and never hides their steps: "+cmdline.Label(strings.Join(s.UnknownTypes, ", ")), cols)
	}
	if advice := sizeAdvice(f, s.StoreBytes); advice != "" {
		cmdline.PrintWrapped(w, advice, cols)
	}
}

// planWords describes the limits of a plan that have not been reset.
func planWords(p *storage.Plan, now time.Time) (list []string) {
	if p == nil {
		return nil
	}
	for i := range p.Windows {
		if w := &p.Windows[i]; w.Resets.After(now) {
			list = append(list, cmdline.Label(quota.Words(w, now)))
		}
	}
	return list
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
	s, err := status.Of(cmd.Context(), &f.Workspace, tenant, name, in.SessionID)
	switch {
	case errors.Is(err, storage.ErrNoSession), errors.Is(err, workspace.ErrNoStore):
		_, err = fmt.Fprintln(w, "furl: no request recorded yet")
		return err
	case err != nil:
		_, err = fmt.Fprintf(w, "furl: %s\n", cmdline.Label(err.Error()))
		return err
	}
	_, err = fmt.Fprintln(w, statusLineOf(s))
	return err
}

// statusLineOf is the status on one line.
func statusLineOf(s *status.Status) string {
	if s.Savings == nil {
		return "furl: no requests counted for this session"
	}
	parts := []string{"furl " + short(s.Size)}
	if s.Window > 0 {
		parts[0] += fmt.Sprintf(" of %s (%s)", short(s.Window), cmdline.PercentOf(s.Size, s.Window))
	} else {
		parts[0] += " tokens"
	}
	if s.Hidden > 0 {
		parts = append(parts, short(s.Hidden)+" hidden")
	}
	if sum := s.Savings; sum.TokensSaved > 0 {
		saved := fmt.Sprintf("%s tokens saved (%s)", short(sum.TokensSaved), cmdline.PercentOf(sum.TokensSaved, sum.TokensWithout))
		if sum.Saved >= 0.005 {
			saved += ", list price " + numbers.Money(sum.Saved)
		}
		parts = append(parts, saved)
	}
	if words := nextinput.Words(s.Next, time.Now()); words != "" {
		parts = append(parts, words)
	}
	for _, u := range s.Limits {
		if u.Near() {
			parts = append(parts, u.Short())
		}
	}
	if s.Plan != nil {
		for _, w := range s.Plan.Windows {
			if w.Resets.After(time.Now()) {
				parts = append(parts, fmt.Sprintf("%s %.0f%%", cmdline.Label(w.Name), 100*w.Used))
			}
		}
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
