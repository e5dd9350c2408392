package gatewaycmd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/serving"
)

// keysFlags are the flags of furl keys.
type keysFlags struct {
	program cmdline.Program
	config  string
	json    bool
}

func (f *keysFlags) add(cmd *cobra.Command) {
	cmdline.AddConfig(cmd.Flags(), &f.config)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

// file returns the path of the file of named keys.
func (f *keysFlags) file() (string, error) {
	c, file, err := config.Load(f.config, f.program.Policies)
	if err != nil {
		return "", err
	}
	if c.Gateway.KeysFile == "" {
		return "", errors.New("no file of keys: set gateway.keys_file in the configuration, such as keys_file: client-keys.json")
	}
	return config.Beside(file, c.Gateway.KeysFile), nil
}

// KeysCommand returns furl keys.
func KeysCommand(p cmdline.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Manage the keys of a gateway's clients",
		Long: `Manages the named keys of clients in the file gateway.keys_file. The file has hashes of
keys, and the key itself is shown once, when it is made. A running gateway reads the
file again on SIGHUP or POST /furl/v1/reload.`,
		Example: "  furl keys create ann --expires 90d\n  furl keys list\n  furl keys revoke ann",
		Args:    cmdline.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(createKeyCommand(p), listKeysCommand(p), revokeKeyCommand(p))
	return cmd
}

// createFlags are the flags of furl keys create.
type createFlags struct {
	keysFlags
	expires, tenant string
	scopes          []string
}

func createKeyCommand(p cmdline.Program) *cobra.Command {
	f := createFlags{keysFlags: keysFlags{program: p}}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a key and print it once",
		Long: `Creates a key and prints it. It is not stored, so it cannot be shown again. Its holder
sends it in X-Furl-Key, or as the credential. With gateway.tenants, holders of keys with
the same tenant share their sessions.

Scopes: proxy sends requests to models, read reads sessions by the API and the page,
change changes them, operate sees metrics and totals and reloads the configuration.`,
		Example: `  furl keys create ann --expires 90d
  furl keys create ann-2 --tenant ann       a second key for the same sessions
  furl keys create auditor --scope read --tenant ann
  furl keys create prometheus --scope operate`,
		Args: cmdline.Exactly(1, "the name of the key"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.expires, "expires", "", "`time` until the key expires, such as 90d (default never)")
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "`name` of the tenant whose sessions it opens (default the key's name)")
	cmd.Flags().StringSliceVar(&f.scopes, "scope", access.Client.Names(), "what the key may do: "+strings.Join(access.ScopeNames(), ", "))
	cmdline.Complete(cmd, "scope", access.ScopeNames)
	return cmd
}

// run is furl keys create.
func (f *createFlags) run(cmd *cobra.Command, args []string) error {
	name, err := f.file()
	if err != nil {
		return err
	}
	now := time.Now()
	var until time.Time
	if f.expires != "" {
		age, err := numbers.ParseAge(f.expires)
		if err != nil || age <= 0 {
			return cmdline.BadUsage("invalid --expires %s: expected a duration such as 90d or 12h", f.expires)
		}
		until = now.Add(age)
	}
	s, err := access.ParseScopes(f.scopes)
	if err != nil {
		return cmdline.BadUsage("--scope: %w", err)
	}
	key, secret, err := access.NewKey(args[0], f.tenant, s, now, until)
	if err != nil {
		return cmdline.AsUsage(err)
	}
	err = serving.ChangeNamedKeys(name, func(keys []access.Key) ([]access.Key, error) {
		for _, k := range keys {
			if k.Name == key.Name && k.Revoked.IsZero() {
				return nil, fmt.Errorf("the key %q exists: revoke it first, or choose another name and --tenant %s for the same sessions", k.Name, tenantOfKey(&k))
			}
		}
		return append(keys, key), nil
	})
	if err != nil {
		return fmt.Errorf("create key %s: %w", args[0], err)
	}
	if f.json {
		line := jsonKeyOf(&key, now)
		line.Key = secret
		return cmdline.PrintJSON(cmd.OutOrStdout(), line)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "This key is shown once. Reload the gateway to accept it.")
	fmt.Fprintln(cmd.OutOrStdout(), secret)
	return nil
}

func tenantOfKey(k *access.Key) string {
	if k.Tenant != "" {
		return k.Tenant
	}
	return k.Name
}

// jsonKey is one key of furl keys list --json.
type jsonKey struct {
	Name    string    `json:"name"`
	Tenant  string    `json:"tenant"`
	Scopes  []string  `json:"scopes"`
	State   string    `json:"state"` // valid, expired or revoked
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Key     string    `json:"key,omitempty"` // of furl keys create
}

func jsonKeyOf(k *access.Key, now time.Time) jsonKey {
	state := "valid"
	if e := (*access.EndedError)(nil); errors.As(k.Usable(now), &e) {
		state = e.Reason
	}
	return jsonKey{Name: k.Name, Tenant: tenantOfKey(k), Scopes: k.Scopes.Names(), State: state, Created: k.Created, Expires: k.Expires, Revoked: k.Revoked}
}

func listKeysCommand(p cmdline.Program) *cobra.Command {
	f := keysFlags{program: p}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List keys with their tenants, scopes and expiry",
		Example: "  furl keys list\n  furl keys list --json",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := f.file()
			if err != nil {
				return err
			}
			keys, err := serving.ReadNamedKeys(name)
			if err != nil {
				return err
			}
			now := time.Now()
			list := make([]jsonKey, len(keys))
			for i := range keys {
				list[i] = jsonKeyOf(&keys[i], now)
			}
			columns := []cmdline.Column{cmdline.Text("name"), cmdline.Text("tenant"), cmdline.Text("scopes"), cmdline.Text("state"), cmdline.Text("expires")}
			return cmdline.PrintList(cmd.OutOrStdout(), f.json, "keys", list, "No keys.", columns, func(k *jsonKey) []string {
				expires := "never"
				if !k.Expires.IsZero() {
					expires = k.Expires.Format(time.DateOnly)
				}
				return []string{k.Name, k.Tenant, strings.Join(k.Scopes, ","), k.State, expires}
			})
		},
	}
	f.add(cmd)
	return cmd
}

func revokeKeyCommand(p cmdline.Program) *cobra.Command {
	f := keysFlags{program: p}
	cmd := &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Revoke a key",
		Long:    "Revokes a key. The gateway refuses it after its next reload, and says why. The name can be\nused again.",
		Example: "  furl keys revoke ann",
		Args:    cmdline.Exactly(1, "the name of the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := f.file()
			if err != nil {
				return err
			}
			var revoked access.Key
			err = serving.ChangeNamedKeys(name, func(keys []access.Key) ([]access.Key, error) {
				for i := range keys {
					if k := &keys[i]; k.Name == args[0] && k.Revoked.IsZero() {
						k.Revoked = time.Now().UTC().Truncate(time.Second)
						revoked = *k
						return keys, nil
					}
				}
				return nil, cmdline.BadUsage("unknown key %q: furl keys list lists the keys", args[0])
			})
			if err != nil {
				return err
			}
			if f.json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), jsonKeyOf(&revoked, time.Now()))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "revoked %s; reload the gateway to refuse it\n", revoked.Name)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
