package gatewaycmd

import (
	"bufio"
	"context"
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
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// jsonTenant is one tenant of furl tenants --json.
type jsonTenant struct {
	Tenant   string    `json:"tenant"`
	Sessions int       `json:"sessions"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`
	Newest   time.Time `json:"newest"`
}

// TenantsCommand returns furl tenants.
func TenantsCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.StoreFlags{Program: p}
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
			defer cmdline.CloseStore(store, &err)
			list, err := listTenants(cmd.Context(), store)
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

func listTenants(ctx context.Context, store storage.Store) ([]jsonTenant, error) {
	names, err := cmdline.TenantsOf(ctx, store)
	if err != nil {
		return nil, err
	}
	list := []jsonTenant{}
	for _, name := range names {
		t := jsonTenant{Tenant: cmdline.TenantWord(name)}
		for info, err := range store.Sessions(ctx, name, storage.SessionQuery{}) {
			if err != nil {
				return nil, err
			}
			t.Sessions++
			t.Messages += info.Messages
			t.Bytes += info.Bytes
			if at := info.Newest(); at.After(t.Newest) {
				t.Newest = at
			}
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b jsonTenant) int { return b.Newest.Compare(a.Newest) })
	return list, nil
}

func printTenants(w io.Writer, list []jsonTenant, now time.Time) {
	t := cmdline.NewTable(w, cmdline.Text("tenant"), cmdline.Number("sessions"), cmdline.Number("messages"), cmdline.Number("size"), cmdline.Number("updated"))
	for _, one := range list {
		t.Add(one.Tenant, numbers.Thousands(one.Sessions), numbers.Thousands(one.Messages), cmdline.BytesSize(one.Bytes), cmdline.Ago(now, one.Newest))
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
			name, err := tenantSecretFile()
			if err != nil {
				return err
			}
			secret, err := cmdline.ReadPrivate(name)
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
	lines := bufio.NewScanner(io.LimitReader(in, cmdline.MaxPrivate))
	lines.Buffer(nil, cmdline.MaxPrivate)
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

// jsonMoved is one session of furl tenants move --json.
type jsonMoved struct {
	Session furl.SessionID `json:"session"`
	// As is its id at the new tenant. It differs if that tenant already has a
	// session with the id.
	As       furl.SessionID `json:"as"`
	Title    string         `json:"title"`
	Messages int            `json:"messages"`
}

func moveTenantCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.StoreFlags{Program: p}
	var dry bool
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
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			store, err := f.Existing(ctx)
			if err != nil {
				return err
			}
			defer cmdline.CloseStore(store, &err)
			m := &tenantMover{Importer: cmdline.Importer{Store: store, Dry: dry}}
			if m.from, err = cmdline.TenantNamed(ctx, store, args[0]); err != nil {
				return err
			}
			if m.to, err = cmdline.TenantNamed(ctx, store, args[1]); err != nil {
				return err
			}
			f.Program.Audited.FoundTenant(m.from)
			m.moved = func(s furl.SessionID) error {
				return f.Program.Audited.Each(furl.SessionKey{Tenant: m.from, Session: s})
			}
			moved, err := m.sessions(ctx, args[2:])
			if len(moved) > 0 && !dry {
				err = errors.Join(err, recall.NewIndexer(store, nil).CatchupTenant(ctx, m.to))
			}
			if f.Json {
				return errors.Join(err, cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"moved": moved, "dry_run": dry}))
			}
			verb := map[bool]string{true: "would move", false: "moved"}[dry]
			for _, s := range moved {
				as := ""
				if s.As != s.Session {
					as = fmt.Sprintf(" as %s", s.As)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s%s  %s, %s\n", verb, s.Session, as, numbers.Count(s.Messages, "message"), cmdline.Truncate(s.Title, 60))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", verb, numbers.Count(len(moved), "session"))
			return err
		},
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be moved, change nothing")
	return cmd
}

// tenantMover moves sessions. It copies a session and then deletes the original.
type tenantMover struct {
	cmdline.Importer
	from, to furl.Tenant
	moved    func(furl.SessionID) error // called after each
}

// sessions moves the sessions with these names or beginnings of names, or all, and
// returns those that were moved.
func (m *tenantMover) sessions(ctx context.Context, names []string) ([]jsonMoved, error) {
	moved := []jsonMoved{}
	if m.from == m.to {
		return moved, cmdline.BadUsage("source and destination are the same tenant %s", cmdline.TenantWord(m.from))
	}
	deleter, ok := m.Store.(storage.Deleter)
	if !ok {
		return moved, errors.New("this store does not support deleting, which moving requires")
	}
	infos, err := m.chosen(ctx, names)
	if err != nil {
		return moved, err
	}
	for _, info := range infos {
		one, err := m.session(ctx, deleter, info)
		if err != nil {
			return moved, fmt.Errorf("move session %s: %w", info.Session, err)
		}
		moved = append(moved, one)
		if m.Dry {
			continue
		}
		if err := m.moved(info.Session); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// chosen returns the sessions with these names.
func (m *tenantMover) chosen(ctx context.Context, names []string) (chosen []storage.SessionInfo, err error) {
	if len(names) == 0 {
		names = []string{""}
	}
	seen := make(map[furl.SessionID]bool)
	for _, name := range names {
		var found []storage.SessionInfo
		for info, err := range m.Store.Sessions(ctx, m.from, storage.SessionQuery{Prefix: name}) {
			if err != nil {
				return nil, err
			}
			if string(info.Session) == name {
				found = []storage.SessionInfo{info}
				break
			}
			found = append(found, info)
		}
		if len(found) == 0 {
			if name == "" {
				return nil, fmt.Errorf("tenant %s has no sessions", cmdline.TenantWord(m.from))
			}
			return nil, fmt.Errorf("tenant %s, session %q: %w", cmdline.TenantWord(m.from), name, storage.ErrNoSession)
		}
		if name != "" && len(found) > 1 {
			return nil, cmdline.BadUsage("ambiguous session %q: %s start with it", name, numbers.Count(len(found), "session"))
		}
		for _, info := range found {
			if !seen[info.Session] {
				seen[info.Session] = true
				chosen = append(chosen, info)
			}
		}
	}
	return chosen, nil
}

// session moves a session, including records that are appended meanwhile.
func (m *tenantMover) session(ctx context.Context, deleter storage.Deleter, info storage.SessionInfo) (jsonMoved, error) {
	line := jsonMoved{Session: info.Session, As: info.Session, Title: info.Title, Messages: info.Messages}
	if err := storage.CheckHeld(ctx, m.Store, info.SessionKey); err != nil { // its original would be deleted
		return line, err
	}
	for copied := -1; ; {
		var records []furl.Record
		for r, err := range m.Store.Read(ctx, info.SessionKey, 0) {
			if err != nil {
				return line, err
			}
			records = append(records, r)
		}
		if len(records) == copied {
			if err := deleter.Delete(ctx, info.SessionKey); err != nil {
				return line, err
			}
			return line, cmdline.DeleteCopies(info.SessionKey) // furl chat does not continue a session of a tenant
		}
		if err := m.copy(ctx, &line, info, records); err != nil || m.Dry {
			return line, err
		}
		copied = len(records)
	}
}

// contentsIn reads the contents of a session.
func contentsIn(ctx context.Context, store storage.Store, key furl.SessionKey) rebuild.Contents {
	return func(d furl.Digest) ([]byte, error) {
		if c, ok := store.(storage.ContentStore); ok {
			return c.Content(ctx, key, d)
		}
		return nil, storage.ErrNoContent
	}
}

// copy adds the records to a session of the new tenant. It chooses another id if that
// tenant has a different session with this one.
func (m *tenantMover) copy(ctx context.Context, line *jsonMoved, info storage.SessionInfo, records []furl.Record) error {
	// Keep its time, which retention and lists use.
	meta := info.Meta
	meta.Imported, meta.Recorded = furl.Seq(len(records)), info.Newest()
	for n := 1; ; n++ {
		key := furl.SessionKey{Tenant: m.to, Session: line.As}
		common, stored, err := cmdline.CommonRecords(ctx, m.Store, key, records)
		switch {
		case err != nil:
			return err
		case common == stored && !m.Dry:
			return m.Add(ctx, key, &meta, nil, records[stored:], contentsIn(ctx, m.Store, info.SessionKey))
		case common == stored, common == len(records):
			return nil
		case n >= 1000:
			return errors.New("too many sessions with that id")
		}
		line.As = furl.SessionID(fmt.Sprintf("%s.%d", info.Session, n+1))
	}
}
