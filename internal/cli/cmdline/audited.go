package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/user"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
	"github.com/spf13/cobra"
)

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
	"furl encryption enable": {"operate", severalTenants}, "furl encryption rotate": {"operate", severalTenants}, "furl encryption destroy": {"delete", aTenant},
	"furl encryption export": {"operate", nothing}, "furl encryption import": {"operate", nothing},
}

// argName is what the first argument of a command names.
type argName int

const (
	nothing        argName = iota // or content
	aSession                      // a session
	sessions                      // a session, and so do the other arguments
	aTenant                       // a tenant
	severalTenants                // a tenant, and so do the other arguments
)

// Audited is the command that runs, for the line with its result.
type Audited struct {
	config *config.Config // nil: the command has no line
	file   string         // of the configuration
	entry  audit.Entry
	failed error // of each
}

// Finish writes down the result of the command. err is its error. A failure is a
// warning: the command has run.
func (a *Audited) Finish(errs io.Writer, err error) {
	if a == nil || a.config == nil {
		return
	}
	result := a.entry.Result(ResultOf(err))
	if held := (*storage.HeldError)(nil); errors.As(err, &held) {
		result.Reason = held.Error()
	}
	if err := errors.Join(a.failed, appendAudit(a.config, a.file, result)); err != nil {
		fmt.Fprintf(errs, "warning: %s\n", Printable(err.Error()))
	}
}

// Found notes the session that the command has found by its name. With "", the command is
// about several.
func (a *Audited) Found(id furl.SessionID) {
	if a != nil {
		a.entry.Session = string(id)
	}
}

// FoundTenant notes the tenant that the command has found by its name.
func (a *Audited) FoundTenant(t furl.Tenant) {
	if a != nil {
		a.entry.Tenant = tenants.Word(t)
	}
}

// Each writes down what a command about several sessions or tenants has done with one of
// them, before it goes on to the next. It returns an error if the command must stop then.
// The last line, by finish, has the result of the command.
func (a *Audited) Each(key furl.SessionKey) error {
	if a == nil || a.config == nil || string(key.Session) == a.entry.Session && key.Session != "" {
		return nil // the last line names the session
	}
	done := a.entry.Result(audit.Done)
	done.Tenant, done.Session = tenants.Word(key.Tenant), string(key.Session)
	err := appendAudit(a.config, a.file, done)
	if a.config.Audit.Required {
		return err
	}
	if err != nil && a.failed == nil {
		a.failed = err
	}
	return nil
}

// ResultOf returns the outcome of an access that ended with an error, or with nil.
func ResultOf(err error) string {
	held := (*storage.HeldError)(nil)
	switch {
	case err == nil:
		return audit.Done
	case errors.Is(err, storage.ErrNoSession), errors.Is(err, furl.ErrNotOnPath), errors.Is(err, workspace.ErrNoStore), errors.Is(err, fs.ErrNotExist):
		return audit.NotFound
	case errors.As(err, &held):
		return audit.Refused
	}
	return audit.Failed
}

// auditCommandLine writes down what a command is about to do, if the configuration has an
// audit log.
func (p Program) auditCommandLine(cmd *cobra.Command, args []string) error {
	what, ok := auditedCommands[cmd.CommandPath()]
	if o := operation.Named(cmd.Name()); !ok && o != nil && cmd.CommandPath() == "furl "+o.Command {
		what.action, what.names, ok = string(o.Audit), aSession, true
	}
	if !ok || cmd.Flags().Lookup("config") == nil {
		return nil
	}
	c, file, err := config.Load(cmd.Flags().Lookup("config").Value.String(), p.Policies)
	if err != nil || c.Audit.File == "" {
		return nil // the command itself reports an error
	}
	e := audit.Entry{Action: what.action, Via: "cli", Who: ShellUser(), By: string(access.ByShell), Target: cmd.CommandPath()}
	switch {
	case len(args) == 0:
	case what.names == aSession, what.names == sessions && len(args) == 1:
		e.Session = args[0]
	case what.names == aTenant, what.names == severalTenants && len(args) == 1:
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
		if p.Audited != nil {
			*p.Audited = Audited{config: c, file: file, entry: e}
		}
	case c.Audit.Required:
		return fmt.Errorf("%w; nothing was done (audit.required is set)", err)
	default:
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", Printable(err.Error()))
	}
	return nil
}

// appendAudit writes one entry.
func appendAudit(c *config.Config, file string, e audit.Entry) error {
	log, err := workspace.OpenAudit(c, file)
	if err != nil {
		return err
	}
	return errors.Join(log.Append(e), log.Close())
}

// ShellUser is the name of the user who runs the command.
func ShellUser() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}
