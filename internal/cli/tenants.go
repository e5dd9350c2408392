package cli

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
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// localName is the name of localTenant on the command line.
const localName = "local"

// jsonTenant is one tenant of furl tenants --json.
type jsonTenant struct {
	Tenant   string    `json:"tenant"`
	Sessions int       `json:"sessions"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`
	Newest   time.Time `json:"newest"`
}

func tenantsCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
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
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			store, err := f.existing(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(store, &err)
			list, err := listTenants(cmd.Context(), store)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"tenants": list})
			}
			printTenants(cmd.OutOrStdout(), list, time.Now())
			return nil
		},
	}
	f.add(cmd)
	cmd.AddCommand(tenantIDCommand(p), moveTenantCommand(p))
	return cmd
}

func listTenants(ctx context.Context, store storage.Store) ([]jsonTenant, error) {
	names, err := tenantsOf(ctx, store)
	if err != nil {
		return nil, err
	}
	list := []jsonTenant{}
	for _, name := range names {
		t := jsonTenant{Tenant: tenantWord(name)}
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
	t := newTable(w, text("tenant"), number("sessions"), number("messages"), number("size"), number("updated"))
	for _, one := range list {
		t.add(one.Tenant, numbers.Thousands(one.Sessions), numbers.Thousands(one.Messages), bytesSize(one.Bytes), ago(now, one.Newest))
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "No sessions.")
		return
	}
	t.print()
}

func tenantsOf(ctx context.Context, store storage.Store) ([]furl.Tenant, error) {
	lister, ok := store.(storage.TenantLister)
	if !ok {
		return nil, errors.New("this store does not support listing tenants")
	}
	list, err := lister.Tenants(ctx)
	return slices.DeleteFunc(list, func(t furl.Tenant) bool { return t == storage.HoldTenant }), err
}

func tenantWord(t furl.Tenant) string {
	if t == localTenant {
		return localName
	}
	return string(t)
}

// tenantNamed returns the tenant with a name: "local", a full name, or the beginning of
// one tenant's name if that is a hash. Other names are those of people and groups, where
// one may begin another. A full hash need not have sessions yet.
func tenantNamed(ctx context.Context, store storage.Store, word string) (furl.Tenant, error) {
	if word == localName {
		return localTenant, nil
	}
	if isTenant(word) {
		return furl.Tenant(word), nil
	}
	all, err := tenantsOf(ctx, store)
	if err != nil {
		return "", err
	}
	var found []furl.Tenant
	for _, t := range all {
		if t == furl.Tenant(word) && word != "" {
			return t, nil
		}
		if word != "" && isTenant(string(t)) && strings.HasPrefix(string(t), word) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return "", usageError{&unknownTenantError{word}}
	case 1:
		return found[0], nil
	}
	return "", badUsage("ambiguous tenant %q: %d tenants start with it", word, len(found))
}

// unknownTenantError is the error for a name that no tenant of the store has.
type unknownTenantError struct{ word string }

func (e *unknownTenantError) Error() string {
	return fmt.Sprintf("unknown tenant %q: furl tenants lists the tenants of the store", e.word)
}

// tenantNamedOrNew is tenantNamed for a tenant that need not have sessions yet. It prints a line
// on standard error if it has none, since the name may be misspelled. A word of hexadecimal
// digits is the beginning of a hash, so it must exist.
func tenantNamedOrNew(cmd *cobra.Command, store storage.Store, word string) (furl.Tenant, error) {
	t, err := tenantNamed(cmd.Context(), store, word)
	if _, ok := errors.AsType[*unknownTenantError](err); !ok || isHex(word) || access.CheckTenant(word) != nil {
		return t, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "furl: tenant %s has no sessions yet\n", word)
	return furl.Tenant(word), nil
}

// isTenant reports whether a word has the form of a full tenant name.
func isTenant(word string) bool {
	return len(word) == len(gateway.TenantOf(nil, "")) && isHex(word)
}

func isHex(word string) bool { return strings.Trim(word, "0123456789abcdef") == "" }

func tenantIDCommand(p program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "id",
		Short: "Print the tenant of a key from standard input",
		Long: `Reads a client key or a credential from standard input and prints its tenant, for a
gateway that uses the tenants.key of this data folder. If requests have several
credentials, put each on a line. With gateway.tenant_by: both, put the client key
on the first line.`,
		Example: "  furl tenants id < key\n  FURL_DATA=/var/lib/furl furl tenants id < key",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := config.Load(file, p.policies)
			if err != nil {
				return err
			}
			name, err := tenantSecretFile()
			if err != nil {
				return err
			}
			secret, err := readPrivate(name)
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
					return badUsage("gateway.tenant_by is both: expected the client key and the credential, each on a line")
				}
				key, shown = shown[0], shown[1:]
			}
			fmt.Fprintln(cmd.OutOrStdout(), gateway.TenantOf(secret, key, shown...))
			return nil
		},
	}
	addConfig(cmd.Flags(), &file)
	return cmd
}

// readSecrets reads keys, one per line.
func readSecrets(in io.Reader) (keys []string, err error) {
	lines := bufio.NewScanner(io.LimitReader(in, maxPrivate))
	lines.Buffer(nil, maxPrivate)
	for lines.Scan() {
		if key := strings.TrimSpace(lines.Text()); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(keys) == 0 {
		return nil, badUsage("no key on standard input: expected one per line")
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

func moveTenantCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
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
				return badUsage("furl tenants move requires two tenants; furl tenants lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			store, err := f.existing(ctx)
			if err != nil {
				return err
			}
			defer closing(store, &err)
			m := &tenantMover{importer: importer{store: store, dry: dry}}
			if m.from, err = tenantNamed(ctx, store, args[0]); err != nil {
				return err
			}
			if m.to, err = tenantNamed(ctx, store, args[1]); err != nil {
				return err
			}
			f.program.audited.foundTenant(m.from)
			m.moved = func(s furl.SessionID) error {
				return f.program.audited.each(furl.SessionKey{Tenant: m.from, Session: s})
			}
			moved, err := m.sessions(ctx, args[2:])
			if len(moved) > 0 && !dry {
				err = errors.Join(err, recall.NewIndexer(store, nil).CatchupTenant(ctx, m.to))
			}
			if f.json {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), map[string]any{"moved": moved, "dry_run": dry}))
			}
			verb := map[bool]string{true: "would move", false: "moved"}[dry]
			for _, s := range moved {
				as := ""
				if s.As != s.Session {
					as = fmt.Sprintf(" as %s", s.As)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s%s  %s, %s\n", verb, s.Session, as, numbers.Count(s.Messages, "message"), truncate(s.Title, 60))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", verb, numbers.Count(len(moved), "session"))
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be moved, change nothing")
	return cmd
}

// tenantMover moves sessions. It copies a session and then deletes the original.
type tenantMover struct {
	importer
	from, to furl.Tenant
	moved    func(furl.SessionID) error // called after each
}

// sessions moves the sessions with these names or beginnings of names, or all, and
// returns those that were moved.
func (m *tenantMover) sessions(ctx context.Context, names []string) ([]jsonMoved, error) {
	moved := []jsonMoved{}
	if m.from == m.to {
		return moved, badUsage("source and destination are the same tenant %s", tenantWord(m.from))
	}
	deleter, ok := m.store.(storage.Deleter)
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
		if m.dry {
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
		for info, err := range m.store.Sessions(ctx, m.from, storage.SessionQuery{Prefix: name}) {
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
				return nil, fmt.Errorf("tenant %s has no sessions", tenantWord(m.from))
			}
			return nil, fmt.Errorf("tenant %s, session %q: %w", tenantWord(m.from), name, storage.ErrNoSession)
		}
		if name != "" && len(found) > 1 {
			return nil, badUsage("ambiguous session %q: %s start with it", name, numbers.Count(len(found), "session"))
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
	if err := storage.CheckHeld(ctx, m.store, info.SessionKey); err != nil { // its original would be deleted
		return line, err
	}
	for copied := -1; ; {
		var records []furl.Record
		for r, err := range m.store.Read(ctx, info.SessionKey, 0) {
			if err != nil {
				return line, err
			}
			records = append(records, r)
		}
		if len(records) == copied {
			if err := deleter.Delete(ctx, info.SessionKey); err != nil {
				return line, err
			}
			return line, deleteCopies(info.SessionKey) // furl chat does not continue a session of a tenant
		}
		if err := m.copy(ctx, &line, info, records); err != nil || m.dry {
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
		common, stored, err := shared(ctx, m.store, key, records)
		switch {
		case err != nil:
			return err
		case common == stored && !m.dry:
			return m.add(ctx, key, &meta, nil, records[stored:], contentsIn(ctx, m.store, info.SessionKey))
		case common == stored, common == len(records):
			return nil
		case n >= 1000:
			return errors.New("too many sessions with that id")
		}
		line.As = furl.SessionID(fmt.Sprintf("%s.%d", info.Session, n+1))
	}
}
