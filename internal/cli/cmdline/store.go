package cmdline

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// StoreFlags are the flags of commands that use a store.
type StoreFlags struct {
	Program Program
	workspace.Workspace
	Tenant string // whose sessions, as on the command line; "": local
	Json   bool
}

// NewStoreFlags returns the flags of a command.
func NewStoreFlags(p Program) StoreFlags {
	return StoreFlags{Program: p, Workspace: workspace.Workspace{Policies: p.Policies}}
}

// Add adds the flags to a command.
func (f *StoreFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Place, "store", "", "`file` or postgres:// URL of the store (default $FURL_STORE, else that of the configuration)")
	AddConfig(cmd.Flags(), &f.Config)
	cmd.Flags().BoolVar(&f.Json, "json", false, "print JSON")
	f.Notes = cmd.ErrOrStderr
}

// Given returns the flags that choose the store and the configuration as they were given
// on the command line, for another command of furl.
func (f *StoreFlags) Given() (args []string) {
	if f.Config != "" {
		args = append(args, "--config="+f.Config)
	}
	if f.Place != "" {
		args = append(args, "--store="+f.Place)
	}
	return args
}

// AddTenant adds the flag for the sessions of a tenant.
func (f *StoreFlags) AddTenant(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Tenant, "tenant", tenants.LocalName, "use the sessions of this `tenant` of a gateway (see furl tenants)")
}

// Whose returns the tenant that the command line names.
func (f *StoreFlags) Whose(ctx context.Context, store storage.Store) (furl.Tenant, error) {
	tenant, err := tenants.Named(ctx, store, cmp.Or(f.Tenant, tenants.LocalName))
	if err == nil && f.Tenant != "" {
		f.Program.Audited.FoundTenant(tenant)
	}
	return tenant, err
}

// CompleteSessions completes ids of sessions, with their titles, and file names for
// commands that take files.
func CompleteSessions(f *StoreFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		files := cobra.ShellCompDirectiveNoFileComp
		if strings.Contains(cmd.Use, "|FILE") {
			files = cobra.ShellCompDirectiveDefault
		}
		if len(args) > 0 && !strings.Contains(cmd.Use, "[SESSION]...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		store, err := f.Existing(cmd.Context())
		if err != nil {
			return nil, files
		}
		defer store.Close()
		whose, err := f.Whose(cmd.Context(), store)
		if err != nil {
			return nil, files
		}
		var ids []string
		if strings.HasPrefix(session.Latest, begun) {
			ids = append(ids, session.Latest+"\tthe newest session")
		}
		for info, err := range store.Sessions(cmd.Context(), whose, storage.SessionQuery{Prefix: begun, Limit: 200}) {
			if err != nil {
				break
			}
			ids = append(ids, string(info.Session)+"\t"+Truncate(info.Title, 60))
		}
		return ids, files
	}
}
