package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/mcpserver"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/storage"
)

// openAudit opens the audit log of the configuration, nil if there is none.
func openAudit(c *config.Config, file string) (*audit.Log, error) {
	if c.Audit.File == "" {
		return nil, nil
	}
	return audit.Open(config.Beside(file, c.Audit.File), &audit.Options{MaxSize: c.Audit.MaxSize})
}

// auditedCommands are the commands that read or change sessions of a store, and what they
// do, besides those of package operation. names is what the first argument is; the others may be content.
var auditedCommands = map[string]struct {
	action string
	names  argName
}{
	"furl show": {"read", aSession}, "furl get": {"read", aSession}, "furl context": {"read", aSession}, "furl branches": {"read", aSession}, "furl sessions": {"read", nothing},
	"furl search": {"search", nothing}, "furl export": {"export", aSession}, "furl resume": {"export", aSession},
	"furl set": {"change", aSession}, "furl summary": {"read", aSession}, "furl import": {"change", nothing},
	"furl delete": {"delete", sessions}, "furl tenants move": {"change", aTenant}, "furl hold": {"hold", aSession}, "furl hold release": {"release", nothing},
	"furl keys create": {"operate", nothing}, "furl keys revoke": {"operate", nothing}, "furl audit export": {"export", nothing},
	"furl redact": {"change", aSession}, "furl backup": {"export", nothing}, "furl backup restore": {"change", nothing},
	"furl encryption enable": {"operate", tenants}, "furl encryption rotate": {"operate", tenants}, "furl encryption destroy": {"delete", aTenant},
	"furl encryption export": {"operate", nothing}, "furl encryption import": {"operate", nothing},
}

// argName is what the first argument of a command names.
type argName int

const (
	nothing  argName = iota // or content
	aSession                // a session
	sessions                // a session, and so do the other arguments
	aTenant                 // a tenant
	tenants                 // a tenant, and so do the other arguments
)

// auditedCommand is the command that runs, for the line with its result.
type auditedCommand struct {
	config *config.Config // nil: the command has no line
	file   string         // of the configuration
	entry  audit.Entry
	failed error // of each
}

// finish writes down the result of the command. err is its error. A failure is a
// warning: the command has run.
func (a *auditedCommand) finish(errs io.Writer, err error) {
	if a == nil || a.config == nil {
		return
	}
	result := a.entry.Result(resultOf(err))
	if held := (*storage.HeldError)(nil); errors.As(err, &held) {
		result.Reason = held.Error()
	}
	if err := errors.Join(a.failed, appendAudit(a.config, a.file, result)); err != nil {
		fmt.Fprintf(errs, "warning: %s\n", printable(err.Error()))
	}
}

// found notes the session that the command has found by its name. With "", the command is
// about several.
func (a *auditedCommand) found(id furl.SessionID) {
	if a != nil {
		a.entry.Session = string(id)
	}
}

// foundTenant notes the tenant that the command has found by its name.
func (a *auditedCommand) foundTenant(t furl.Tenant) {
	if a != nil {
		a.entry.Tenant = tenantWord(t)
	}
}

// each writes down what a command about several sessions or tenants has done with one of
// them, before it goes on to the next. It returns an error if the command must stop then.
// The last line, by finish, has the result of the command.
func (a *auditedCommand) each(key furl.SessionKey) error {
	if a == nil || a.config == nil || string(key.Session) == a.entry.Session && key.Session != "" {
		return nil // the last line names the session
	}
	done := a.entry.Result(audit.Done)
	done.Tenant, done.Session = tenantWord(key.Tenant), string(key.Session)
	err := appendAudit(a.config, a.file, done)
	if a.config.Audit.Required {
		return err
	}
	if err != nil && a.failed == nil {
		a.failed = err
	}
	return nil
}

// resultOf returns the outcome of an access that ended with an error, or with nil.
func resultOf(err error) string {
	held := (*storage.HeldError)(nil)
	switch {
	case err == nil:
		return audit.Done
	case errors.Is(err, storage.ErrNoSession), errors.Is(err, furl.ErrNotOnPath), errors.Is(err, errNoStore), errors.Is(err, fs.ErrNotExist):
		return audit.NotFound
	case errors.As(err, &held):
		return audit.Refused
	}
	return audit.Failed
}

// auditCommandLine writes down what a command is about to do, if the configuration has an
// audit log.
func (p program) auditCommandLine(cmd *cobra.Command, args []string) error {
	what, ok := auditedCommands[cmd.CommandPath()]
	if o := operation.Named(cmd.Name()); !ok && o != nil && cmd.CommandPath() == "furl "+o.Command {
		what.action, what.names, ok = string(o.Audit), aSession, true
	}
	if !ok || cmd.Flags().Lookup("config") == nil {
		return nil
	}
	c, file, err := config.Load(cmd.Flags().Lookup("config").Value.String(), p.policies)
	if err != nil || c.Audit.File == "" {
		return nil // the command itself reports an error
	}
	e := audit.Entry{Action: what.action, Via: "cli", Who: shellUser(), By: string(access.ByShell), Target: cmd.CommandPath()}
	switch {
	case len(args) == 0:
	case what.names == aSession, what.names == sessions && len(args) == 1:
		e.Session = args[0]
	case what.names == aTenant, what.names == tenants && len(args) == 1:
		e.Tenant = args[0]
	}
	if cmd.CommandPath() == "furl tenants move" && len(args) > 1 {
		e.Target += " " + args[0] + " " + args[1] // names of tenants
	}
	if f := cmd.Flags().Lookup("session"); f != nil && e.Session == "" {
		e.Session = f.Value.String()
	}
	for _, name := range []string{"tenant", "reason"} {
		f := cmd.Flags().Lookup(name)
		switch {
		case f == nil:
		case name == "tenant":
			e.Tenant = cmp.Or(f.Value.String(), e.Tenant)
		default:
			e.Reason = f.Value.String()
		}
	}
	e = e.Allow()
	err = appendAudit(c, file, e)
	switch {
	case err == nil:
		if p.audited != nil {
			*p.audited = auditedCommand{config: c, file: file, entry: e}
		}
	case c.Audit.Required:
		return fmt.Errorf("%w; nothing was done (audit.required is set)", err)
	default:
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", printable(err.Error()))
	}
	return nil
}

// appendAudit writes one entry.
func appendAudit(c *config.Config, file string, e audit.Entry) error {
	log, err := openAudit(c, file)
	if err != nil {
		return err
	}
	return errors.Join(log.Append(e), log.Close())
}

// shellUser is the name of the user who runs the command.
func shellUser() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// auditMCP writes down the calls of an MCP client and their results.
func auditMCP(log *audit.Log, required bool, logger *slog.Logger) func(context.Context, mcpserver.Access) (func(furl.SessionID, error), error) {
	who := shellUser()
	write := func(e audit.Entry) error {
		err := log.Append(e)
		if err != nil {
			logger.Error("audit log cannot be written", "error", err)
		}
		return err
	}
	return func(_ context.Context, a mcpserver.Access) (func(furl.SessionID, error), error) {
		e := audit.Entry{Action: a.Action, Via: "mcp", Who: who, By: string(access.ByShell), Session: a.Session, Target: a.Name}.Allow()
		if write(e) != nil && required {
			return nil, errors.New("the audit log cannot be written; call refused (audit.required is set)")
		}
		return func(session furl.SessionID, err error) {
			result := e.Result(resultOf(err))
			result.Session = cmp.Or(string(session), e.Session)
			_ = write(result) // logged
		}, nil
	}
}

func auditCommand(p program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify and export the audit log",
		Long: `Verifies and exports the audit log of the configuration (audit.file): who has read,
changed, exported or deleted what, and who was refused.`,
		Example: "  furl audit verify\n  furl audit export --since 30d",
		Args:    atMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verifyAuditCommand(p), exportAuditCommand(p))
	return cmd
}

// auditFile returns the path of the audit log.
func (f *keysFlags) auditFile() (string, error) {
	c, file, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return "", err
	}
	if c.Audit.File == "" {
		return "", errors.New("no audit log: set audit.file in the configuration, such as audit: {file: audit.jsonl}")
	}
	return config.Beside(file, c.Audit.File), nil
}

func verifyAuditCommand(p program) *cobra.Command {
	f := keysFlags{program: p}
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no line of the audit log was changed or removed",
		Long: `Checks the hash chain of the audit log over all its files, and prints the number of
entries and the hash of the last one. Lines that were removed at the end leave a valid
chain: keep the printed hash elsewhere, and pass it with --head the next time.`,
		Example: "  furl audit verify\n  furl audit verify --head 5f2c…",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := f.auditFile()
			if err != nil {
				return err
			}
			n, last, found := 0, "", head == ""
			for r, err := range audit.All(name) {
				if err != nil {
					return err
				}
				n, last = n+1, r.Hash
				found = found || r.Hash == head
			}
			if !found {
				return fmt.Errorf("audit log is broken: no entry has the hash %s, so entries were removed at the end", printable(head))
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"entries": n, "head": last})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s, no line was changed or removed\nhead %s\n", entriesText(n), last)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&head, "head", "", "`hash` that an earlier run has printed, which must still be in the log")
	return cmd
}

func exportAuditCommand(p program) *cobra.Command {
	f := keysFlags{program: p}
	var since string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print entries of the audit log as JSON lines",
		Long: `Checks the audit log and prints its entries as they are stored, with their hashes. The
exit code is 1 if the chain is broken; the entries before that are printed.`,
		Example: "  furl audit export --since 30d > audit.jsonl",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := f.auditFile()
			if err != nil {
				return err
			}
			var from time.Time
			if since != "" {
				if from, err = time.Parse(time.DateOnly, since); err != nil {
					age, err := parseAge(since)
					if err != nil {
						return badUsage("invalid --since %s: expected an age such as 30d, or a date such as 2026-11-23", since)
					}
					from = time.Now().Add(-age)
				}
			}
			for r, err := range audit.All(name) {
				if err != nil {
					return err
				}
				if r.Time.Before(from) {
					continue
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", r.Raw); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&since, "since", "", "only entries since this `time`: an age such as 30d, or a date")
	return cmd
}

func entriesText(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return numbers.Thousands(n) + " entries"
}
