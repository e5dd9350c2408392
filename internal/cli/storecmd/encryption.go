package storecmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
)

// EncryptionCommand returns furl encryption.
func EncryptionCommand(p cmdline.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encryption",
		Short: "Manage the encryption of a store",
		Long: `Manages the encryption of a store. With encryption.key_file or encryption.key_env in
the configuration, furl encrypts what it records with keys per tenant, which the
master key wraps. docs/operate/stores.md describes what is encrypted.`,
		Example: `  furl encryption new-key > master.key
  furl encryption status
  furl encryption enable`,
		Args: cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeyCommand(), encryptionStatusCommand(p), enableEncryptionCommand(p), rotateCommand(p), destroyCommand(p),
		exportKeysCommand(p), importKeysCommand(p))
	return cmd
}

func newKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new-key",
		Short: "Print a new random master key",
		Long: `Prints a new random master key. Store it in a file that only furl's user can read, and
a copy apart from the store's backups: without it, encrypted sessions cannot be read.`,
		Example: `  (umask 077; furl encryption new-key > master.key)`,
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), encrypted.NewMasterKey())
			return err
		},
	}
}

// layerOf opens the store of a command about encryption.
func layerOf(f *cmdline.StoreFlags, cmd *cobra.Command) (encrypted.Layer, error) {
	store, err := f.Existing(cmd.Context())
	if err != nil {
		return nil, err
	}
	return store.(encrypted.Layer), nil
}

// jsonEncryption is the encryption of a tenant.
type jsonEncryption struct {
	encrypted.Status
	Tenant string `json:"tenant"`
}

func encryptionStatusCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which tenants are encrypted",
		Long: `Shows which tenants of the store are encrypted, with which master key and data key. It
needs no key.`,
		Example: `  furl encryption status
  furl encryption status --json`,
		Args: cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			l, err := layerOf(&f, cmd)
			if err != nil {
				return err
			}
			defer workspace.CloseStore(l, &err)
			list, err := encrypted.Statuses(cmd.Context(), l)
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(s encrypted.Status) bool { return s.Tenant == storage.HoldTenant })
			out := make([]jsonEncryption, len(list))
			for i, s := range list {
				out[i] = jsonEncryption{s, tenants.Word(s.Tenant)}
			}
			columns := []cmdline.Column{cmdline.Text("tenant"), cmdline.Text("encryption"), cmdline.Text("master key"), cmdline.Number("data keys"), cmdline.Number("key made")}
			return cmdline.PrintList(cmd.OutOrStdout(), f.Json, "tenants", out, "No sessions.", columns, func(s *jsonEncryption) []string {
				keys, made := "", ""
				if s.Keys > 0 {
					keys, made = numbers.Thousands(s.Keys), numbers.Ago(time.Now(), s.Created)
				}
				return []string{s.Tenant, encryptionWord(s.Status), s.Master, keys, made}
			})
		},
	}
	f.Add(cmd)
	return cmd
}

func encryptionWord(s encrypted.Status) string {
	switch {
	case !s.Destroyed.IsZero():
		return "keys destroyed"
	case !s.Encrypted:
		return "none"
	case s.Plain:
		return "new data only"
	}
	return "all data"
}

// layerAndTenants opens the store, and returns the status of the tenants of a command's
// arguments: of all whose keys are not destroyed, if there are none.
func layerAndTenants(f *cmdline.StoreFlags, cmd *cobra.Command, args []string) (l encrypted.Layer, chosen []encrypted.Status, err error) {
	if l, err = layerOf(f, cmd); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	all, err := encrypted.Statuses(cmd.Context(), l)
	if err != nil {
		return nil, nil, err
	}
	if len(args) == 0 {
		return l, slices.DeleteFunc(all, func(s encrypted.Status) bool { return !s.Destroyed.IsZero() }), nil
	}
	for _, word := range args {
		t, err := tenants.Named(cmd.Context(), l, word)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(all, func(s encrypted.Status) bool { return s.Tenant == t })
		if i < 0 {
			chosen = append(chosen, encrypted.Status{Tenant: t})
			continue
		}
		chosen = append(chosen, all[i])
	}
	return l, chosen, nil
}

func enableEncryptionCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var again bool
	cmd := &cobra.Command{
		Use:   "enable [TENANT]...",
		Short: "Encrypt what was recorded before encryption",
		Long: `Encrypts what was recorded before the configuration had a master key, and overwrites
the old bytes. A gateway may go on writing. Each session is encrypted in one step, so
an interrupted command can be repeated. Without a tenant, all are encrypted.`,
		Example: `  furl encryption enable
  furl encryption enable local --all-keys`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			l, chosen, err := layerAndTenants(&f, cmd, args)
			if err != nil {
				return err
			}
			defer workspace.CloseStore(l, &err)
			progress := cmdline.NewBar(cmd.ErrOrStderr(), f.Json)
			sessions, records := 0, 0
			for _, tenant := range chosen {
				err := encrypted.Enable(cmd.Context(), l, tenant.Tenant, again, func(session furl.SessionID, n int) {
					records += n
					if n > 0 {
						sessions++
					}
					progress.Say("encrypting session " + string(session))
				})
				if err != nil {
					progress.Clear()
					return err
				}
			}
			progress.Clear()
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"sessions": sessions, "records": records})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Encrypted %s of %s.\n", numbers.Count(records, "record"), numbers.Count(sessions, "session"))
			return nil
		},
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&again, "all-keys", false, "encrypt again what older data keys encrypt, and remove these keys")
	return cmd
}

// rotateFlags are the flags of furl encryption rotate.
type rotateFlags struct {
	cmdline.StoreFlags
	onlyMaster bool
}

func rotateCommand(p cmdline.Program) *cobra.Command {
	f := rotateFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "rotate [TENANT]...",
		Short: "Use a new data key, or a new master key",
		Long: `Makes a new data key for what tenants record from now on. What was recorded before
stays readable with the older keys, until furl encryption enable --all-keys encrypts it
again. With --master, it only wraps the keys with the first master key of the
configuration; the key of before must be in a later line of the file. Without a tenant,
it is done for all. An interrupted command can be repeated.`,
		Example: `  furl encryption rotate
  furl encryption rotate --master`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&f.onlyMaster, "master", false, "wrap the keys with the new master key, and make no data keys")
	return cmd
}

// run is furl encryption rotate.
func (f *rotateFlags) run(cmd *cobra.Command, args []string) (err error) {
	l, chosen, err := layerAndTenants(&f.StoreFlags, cmd, args)
	if err != nil {
		return err
	}
	defer workspace.CloseStore(l, &err)
	if len(args) == 0 {
		chosen = slices.DeleteFunc(chosen, func(s encrypted.Status) bool { return !s.Encrypted })
		if len(chosen) == 0 {
			return errors.New("rotate keys: no tenant is encrypted; set encryption.key_file or encryption.key_env, then run furl encryption enable")
		}
	}
	n := 0
	for _, tenant := range chosen {
		changed := true
		switch {
		case f.onlyMaster:
			changed, err = encrypted.RotateMaster(cmd.Context(), l, tenant.Tenant)
		default:
			_, err = encrypted.RotateKey(cmd.Context(), l, tenant.Tenant)
		}
		if err != nil {
			return err
		}
		if changed {
			n++
			if err := f.Program.Audited.Each(furl.SessionKey{Tenant: tenant.Tenant}); err != nil {
				return err
			}
		}
	}
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"tenants": n})
	}
	what := "New data key for"
	if f.onlyMaster {
		what = "Keys wrapped with the new master key for"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s %s.\n", what, numbers.Count(n, "tenant"))
	return nil
}

// destroyFlags are the flags of furl encryption destroy.
type destroyFlags struct {
	cmdline.StoreFlags
	yes bool
}

func destroyCommand(p cmdline.Program) *cobra.Command {
	f := destroyFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "destroy TENANT",
		Short: "Destroy the keys of a tenant, and so its content",
		Long: `Destroys the encryption keys of a tenant. All its sessions become unreadable, here and in
backups without the keys. Exported keys (furl encryption export) can still read backups:
delete those files, too. This cannot be undone, so furl asks for confirmation.`,
		Example: `  furl encryption destroy 9f2c41d0a7b3e865`,
		Args:    cmdline.AtMost(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

// run is furl encryption destroy.
func (f *destroyFlags) run(cmd *cobra.Command, args []string) (err error) {
	if len(args) == 0 {
		return cmdline.BadUsage("name a tenant; furl encryption status lists them")
	}
	l, err := layerOf(&f.StoreFlags, cmd)
	if err != nil {
		return err
	}
	defer workspace.CloseStore(l, &err)
	tenant, err := tenants.Named(cmd.Context(), l, args[0])
	if err != nil {
		return err
	}
	f.Program.Audited.FoundTenant(tenant)
	sessions, messages := 0, 0
	// Without the master key only the number of sessions is known.
	for info, err := range l.Inner().Sessions(cmd.Context(), tenant, storage.SessionQuery{}) {
		if err != nil {
			return err
		}
		sessions, messages = sessions+1, messages+info.Messages
	}
	lost := fmt.Sprintf("%s with %s", numbers.Count(sessions, "session"), numbers.Count(messages, "message"))
	if !f.yes {
		if err := cmdline.Confirm(cmd, fmt.Sprintf("Destroy the keys of tenant %s? %s become unreadable permanently.", tenants.Word(tenant), lost)); err != nil {
			return err
		}
	}
	if err := encrypted.Destroy(cmd.Context(), l, tenant); err != nil {
		return err
	}
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"tenant": tenants.Word(tenant), "sessions": sessions, "messages": messages})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Destroyed the keys of tenant %s: %s are unreadable.\n", tenants.Word(tenant), lost)
	return nil
}

func exportKeysCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the wrapped keys of all tenants",
		Long: `Prints the keys of all tenants, wrapped by the master key, as JSON. Backups do not
contain them: keep this output and the master key apart from the backups.`,
		Example: `  furl encryption export > tenant-keys.json`,
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			l, err := layerOf(&f, cmd)
			if err != nil {
				return err
			}
			defer workspace.CloseStore(l, &err)
			data, err := encrypted.Export(cmd.Context(), l)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", data)
			return err
		},
	}
	f.Add(cmd)
	return cmd
}

// maxExportedKeys is the size of the largest file of exported keys, in bytes.
const maxExportedKeys = 256 << 20

func readExportedKeys(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxExportedKeys+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxExportedKeys {
		return nil, errors.New("the file is too large for exported keys: at most 256 MB")
	}
	return data, nil
}

func importKeysCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Restore exported keys of tenants",
		Long: `Restores keys that furl encryption export printed, for tenants that have none, such as
after furl backup restore. It overwrites no keys.`,
		Example: `  furl encryption import tenant-keys.json`,
		Args:    cmdline.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return cmdline.BadUsage("name the file with the exported keys")
			}
			data, err := readExportedKeys(args[0])
			if err != nil {
				return err
			}
			l, err := layerOf(&f, cmd)
			if err != nil {
				return err
			}
			defer workspace.CloseStore(l, &err)
			n, err := encrypted.Import(cmd.Context(), l, data)
			if err != nil {
				return fmt.Errorf("import keys from %s: %w", args[0], err)
			}
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"tenants": n})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Restored the keys of %s.\n", numbers.Count(n, "tenant"))
			return nil
		},
	}
	f.Add(cmd)
	return cmd
}
