package gatewaycmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/private"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/recall"
)

// TenantsCommand returns furl tenants.
func TenantsCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "tenants",
		Short: "List the tenants of a store",
		Long: `Lists the tenants of the store: the users whose sessions a gateway with
gateway.tenants separates. "local" is the name for sessions without a tenant, which all
other commands use. The name of a tenant is a hash; furl tenants id prints the
name for a key.`,
		Example: `  furl tenants
  furl sessions --tenant 9f2c       list the sessions of a tenant
  furl tenants id < key             print the tenant of a key
  furl tenants move 9f2c 41d0       move its sessions to another tenant`,
		Args: cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			list, err := tenants.List(cmd.Context(), store)
			if err != nil {
				return err
			}
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"tenants": list})
			}
			printTenants(cmd.OutOrStdout(), list, time.Now())
			return nil
		},
	}
	f.Add(cmd)
	cmd.AddCommand(tenantIDCommand(p), moveTenantCommand(p))
	return cmd
}

func printTenants(w io.Writer, list []tenants.Tenant, now time.Time) {
	t := cmdline.NewTable(w, cmdline.Text("tenant"), cmdline.Number("sessions"), cmdline.Number("messages"), cmdline.Number("size"), cmdline.Number("updated"))
	for _, one := range list {
		t.Add(one.Tenant, numbers.Thousands(one.Sessions), numbers.Thousands(one.Messages), numbers.Bytes(one.Bytes), numbers.Ago(now, one.Newest))
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "No sessions.")
		return
	}
	t.Print()
}

func tenantIDCommand(p cmdline.Program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "id",
		Short: "Print the tenant of a key from standard input",
		Long: `Reads a client key or a credential from standard input and prints its tenant, for a
gateway that uses the tenants.key of this data folder. If requests have several
credentials, put each on a line. With gateway.tenant_by: both, put the client key
on the first line.`,
		Example: "  furl tenants id < key\n  FURL_DATA=/var/lib/furl furl tenants id < key",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := config.Load(file, p.Policies)
			if err != nil {
				return err
			}
			name, err := serving.TenantSecretFile()
			if err != nil {
				return err
			}
			secret, err := private.Read(name)
			if err != nil {
				return fmt.Errorf("the tenants' key: %w", err)
			}
			shown, err := readSecrets(cmd.InOrStdin())
			if err != nil {
				return err
			}
			key := ""
			if gateway.TenantBy(c.Gateway.TenantBy) == gateway.TenantByBoth {
				if len(shown) < 2 {
					return cmdline.BadUsage("gateway.tenant_by is both: expected the client key and the credential, each on a line")
				}
				key, shown = shown[0], shown[1:]
			}
			fmt.Fprintln(cmd.OutOrStdout(), gateway.TenantOf(secret, key, shown...))
			return nil
		},
	}
	cmdline.AddConfig(cmd.Flags(), &file)
	return cmd
}

// readSecrets reads keys, one per line.
func readSecrets(in io.Reader) (keys []string, err error) {
	lines := bufio.NewScanner(io.LimitReader(in, private.MaxSize))
	lines.Buffer(nil, private.MaxSize)
	for lines.Scan() {
		if key := strings.TrimSpace(lines.Text()); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(keys) == 0 {
		return nil, cmdline.BadUsage("no key on standard input: expected one per line")
	}
	return keys, nil
}

// moveFlags are the flags of furl tenants move.
type moveFlags struct {
	cmdline.StoreFlags
	dry bool
}

func moveTenantCommand(p cmdline.Program) *cobra.Command {
	f := moveFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "move FROM TO [SESSION]...",
		Short: "Move sessions from one tenant to another",
		Long: `Moves all sessions of a tenant, or the named ones, to another tenant. Use it after a
key or credential was replaced, or after gateway.tenant_by was changed, and while
their user is not active. It can be interrupted and run again.`,
		Example: `  furl tenants move 9f2c 41d0 --dry-run
  furl tenants move 9f2c $(furl tenants id < new-key)
  furl tenants move 9f2c 41d0 01jd5 01jd7`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cmdline.BadUsage("furl tenants move requires two tenants; furl tenants lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "list what would be moved, change nothing")
	return cmd
}

// run is furl tenants move.
func (f *moveFlags) run(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	store, err := f.Existing(ctx)
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	m := &tenants.Mover{Importer: recorded.Importer{Store: store, Dry: f.dry}}
	if m.From, err = tenants.Named(ctx, store, args[0]); err != nil {
		return err
	}
	if m.To, err = tenants.Named(ctx, store, args[1]); err != nil {
		return err
	}
	f.Program.Audited.FoundTenant(m.From)
	m.Moved = func(s furl.SessionID) error {
		return f.Program.Audited.Each(furl.SessionKey{Tenant: m.From, Session: s})
	}
	moved, err := m.Sessions(ctx, args[2:])
	if len(moved) > 0 && !f.dry {
		err = errors.Join(err, recall.NewIndexer(store, nil).CatchupTenant(ctx, m.To))
	}
	if f.Json {
		return errors.Join(err, cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"moved": moved, "dry_run": f.dry}))
	}
	verb := map[bool]string{true: "would move", false: "moved"}[f.dry]
	for _, s := range moved {
		as := ""
		if s.As != s.Session {
			as = fmt.Sprintf(" as %s", s.As)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s%s  %s, %s\n", verb, s.Session, as, numbers.Count(s.Messages, "message"), cmdline.Truncate(s.Title, 60))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", verb, numbers.Count(len(moved), "session"))
	return err
}
