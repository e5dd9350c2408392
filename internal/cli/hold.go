package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// jsonHold is a hold in furl hold --json.
type jsonHold struct {
	storage.Hold
	Tenant string `json:"tenant"` // as a word, such as local
}

func jsonHoldOf(h storage.Hold) jsonHold { return jsonHold{h, tenantWord(h.Tenant)} }

func holdCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var tenant, reason string
	cmd := &cobra.Command{
		Use:   "hold [SESSION]",
		Short: "Keep sessions from being deleted (legal hold)",
		Long: `Puts a session, or all sessions of a tenant, under legal hold. Until the hold is released,
neither furl delete nor retention nor the page deletes them. Holds are in the store, so
all processes that use it keep them.`,
		Example: `  furl hold 01jd5 --reason "case 2026-17"
  furl hold --tenant acme --reason "case 2026-17"
  furl hold list
  furl hold release h-7k2m`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if reason = strings.TrimSpace(reason); reason == "" || len(reason) > 500 {
				return badUsage("--reason is required, with at most 500 bytes: it is shown to whoever tries to delete")
			}
			if len(args) == 0 && tenant == "" {
				return badUsage("name a session, or a tenant with --tenant")
			}
			ctx := cmd.Context()
			store, err := f.existing(ctx)
			if err != nil {
				return err
			}
			defer closing(store, &err)
			h := storage.Hold{ID: "h-" + strings.ToLower(rand.Text()[:8]), Tenant: localTenant, Reason: reason, By: shellUser(), Created: time.Now().UTC().Truncate(time.Second)}
			if tenant != "" {
				if h.Tenant, err = tenantNamedOrNew(cmd, store, tenant); err != nil {
					return err
				}
				f.program.audited.foundTenant(h.Tenant)
			}
			if len(args) > 0 {
				info, err := f.sessionOf(cmd, store, h.Tenant, args[0])
				if err != nil {
					return err
				}
				h.Session = info
				f.program.audited.found(info)
			}
			if err := storage.ChangeHolds(ctx, store, func(holds []storage.Hold) ([]storage.Hold, error) { return append(holds, h), nil }); err != nil {
				return fmt.Errorf("hold: %w", err)
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), jsonHoldOf(h))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s holds %s\n", h.ID, heldWords(&h))
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant: without a session, all its sessions, also later ones")
	cmd.Flags().StringVar(&reason, "reason", "", "`why` the sessions are kept")
	cmd.AddCommand(listHoldsCommand(p), releaseHoldCommand(p))
	return cmd
}

// sessionOf returns the session of a tenant with an id or the beginning of one, a title, or
// session.Latest. Ids are compared first: they are readable without the tenant's keys.
func (f *storeFlags) sessionOf(cmd *cobra.Command, store storage.Store, tenant furl.Tenant, name string) (id furl.SessionID, err error) {
	n := 0
	for info, err := range store.Sessions(cmd.Context(), tenant, storage.SessionQuery{Prefix: name}) {
		if err != nil {
			return "", err
		}
		if string(info.Session) == name {
			return info.Session, nil
		}
		id, n = info.Session, n+1
	}
	switch n {
	case 0:
		all, err := f.sessions(store)
		if err != nil {
			return "", err
		}
		s, err := all.For(tenant).Find(cmd.Context(), name)
		if ambiguous := (*session.AmbiguousError)(nil); errors.As(err, &ambiguous) {
			return "", usageError{listAmbiguous(ambiguous)}
		}
		if err != nil {
			return "", fmt.Errorf("tenant %s: %w", tenantWord(tenant), err)
		}
		return s.ID(), nil
	case 1:
		return id, nil
	}
	return "", badUsage("ambiguous session %q: %d sessions start with it", name, n)
}

func heldWords(h *storage.Hold) string {
	if h.Session == "" {
		return "all sessions of tenant " + tenantWord(h.Tenant)
	}
	if h.Tenant == localTenant {
		return "session " + string(h.Session)
	}
	return fmt.Sprintf("session %s of tenant %s", h.Session, tenantWord(h.Tenant))
}

func listHoldsCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List legal holds",
		Example: "  furl hold list\n  furl hold list --json",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			store, err := f.existing(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(store, &err)
			holds, err := storage.Holds(cmd.Context(), store)
			if err != nil {
				return err
			}
			list := make([]jsonHold, len(holds))
			for i, h := range holds {
				list[i] = jsonHoldOf(h)
			}
			columns := []column{text("hold"), text("keeps"), text("since"), text("by"), text("reason")}
			return printList(cmd.OutOrStdout(), f.json, "holds", list, "No legal holds.", columns, func(h *jsonHold) []string {
				return []string{h.ID, heldWords(&h.Hold), h.Created.Format(time.DateOnly), h.By, h.Reason}
			})
		},
	}
	f.add(cmd)
	return cmd
}

func releaseHoldCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	cmd := &cobra.Command{
		Use:     "release HOLD",
		Short:   "Release a legal hold",
		Example: "  furl hold release h-7k2m",
		Args:    exactly(1, "the id of a hold; furl hold list lists them"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := f.existing(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(store, &err)
			var released storage.Hold
			err = storage.ChangeHolds(cmd.Context(), store, func(holds []storage.Hold) ([]storage.Hold, error) {
				for i, h := range holds {
					if h.ID == args[0] {
						released = h
						return append(holds[:i], holds[i+1:]...), nil
					}
				}
				return nil, badUsage("unknown hold %q: furl hold list lists them", args[0])
			})
			if err != nil {
				return err
			}
			f.program.audited.foundTenant(released.Tenant)
			f.program.audited.found(released.Session)
			if f.json {
				return printJSON(cmd.OutOrStdout(), jsonHoldOf(released))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "released %s: %s\n", released.ID, heldWords(&released))
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
