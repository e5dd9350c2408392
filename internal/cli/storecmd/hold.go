package storecmd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// jsonHold is a hold in furl hold --json.
type jsonHold struct {
	storage.Hold
	Tenant string `json:"tenant"` // as a word, such as local
}

func jsonHoldOf(h storage.Hold) jsonHold { return jsonHold{h, tenants.Word(h.Tenant)} }

// HoldCommand returns furl hold.
func HoldCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
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
		Args: cmdline.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if reason = strings.TrimSpace(reason); reason == "" || len(reason) > 500 {
				return cmdline.BadUsage("--reason is required, with at most 500 bytes: it is shown to whoever tries to delete")
			}
			if len(args) == 0 && tenant == "" {
				return cmdline.BadUsage("name a session, or a tenant with --tenant")
			}
			ctx := cmd.Context()
			store, err := f.Existing(ctx)
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			h := storage.Hold{ID: "h-" + strings.ToLower(rand.Text()[:8]), Tenant: tenants.Local, Reason: reason, By: cmdline.ShellUser(), Created: time.Now().UTC().Truncate(time.Second)}
			if tenant != "" {
				if h.Tenant, err = cmdline.TenantNamedOrNew(cmd, store, tenant); err != nil {
					return err
				}
				f.Program.Audited.FoundTenant(h.Tenant)
			}
			if len(args) > 0 {
				info, err := sessionOf(&f, cmd, store, h.Tenant, args[0])
				if err != nil {
					return err
				}
				h.Session = info
				f.Program.Audited.Found(info)
			}
			if err := storage.ChangeHolds(ctx, store, func(holds []storage.Hold) ([]storage.Hold, error) { return append(holds, h), nil }); err != nil {
				return fmt.Errorf("hold: %w", err)
			}
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), jsonHoldOf(h))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s holds %s\n", h.ID, tenants.HeldWords(&h))
			return nil
		},
	}
	f.Add(cmd)
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant: without a session, all its sessions, also later ones")
	cmd.Flags().StringVar(&reason, "reason", "", "`why` the sessions are kept")
	cmd.AddCommand(listHoldsCommand(p), releaseHoldCommand(p))
	return cmd
}

// sessionOf returns the session of a tenant with an id or the beginning of one, a title, or
// session.Latest. Ids are compared first: they are readable without the tenant's keys.
func sessionOf(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store, tenant furl.Tenant, name string) (id furl.SessionID, err error) {
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
		all, err := f.Sessions(store)
		if err != nil {
			return "", err
		}
		s, err := all.For(tenant).Find(cmd.Context(), name)
		if ambiguous := (*session.AmbiguousError)(nil); errors.As(err, &ambiguous) {
			return "", cmdline.AsUsage(cmdline.ListAmbiguous(ambiguous))
		}
		if err != nil {
			return "", fmt.Errorf("tenant %s: %w", tenants.Word(tenant), err)
		}
		return s.ID(), nil
	case 1:
		return id, nil
	}
	return "", cmdline.BadUsage("ambiguous session %q: %d sessions start with it", name, n)
}

func listHoldsCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List legal holds",
		Example: "  furl hold list\n  furl hold list --json",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			holds, err := storage.Holds(cmd.Context(), store)
			if err != nil {
				return err
			}
			list := make([]jsonHold, len(holds))
			for i, h := range holds {
				list[i] = jsonHoldOf(h)
			}
			columns := []cmdline.Column{cmdline.Text("hold"), cmdline.Text("keeps"), cmdline.Text("since"), cmdline.Text("by"), cmdline.Text("reason")}
			return cmdline.PrintList(cmd.OutOrStdout(), f.Json, "holds", list, "No legal holds.", columns, func(h *jsonHold) []string {
				return []string{h.ID, tenants.HeldWords(&h.Hold), h.Created.Format(time.DateOnly), h.By, h.Reason}
			})
		},
	}
	f.Add(cmd)
	return cmd
}

func releaseHoldCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:     "release HOLD",
		Short:   "Release a legal hold",
		Example: "  furl hold release h-7k2m",
		Args:    cmdline.Exactly(1, "the id of a hold; furl hold list lists them"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			var released storage.Hold
			err = storage.ChangeHolds(cmd.Context(), store, func(holds []storage.Hold) ([]storage.Hold, error) {
				for i, h := range holds {
					if h.ID == args[0] {
						released = h
						return append(holds[:i], holds[i+1:]...), nil
					}
				}
				return nil, cmdline.BadUsage("unknown hold %q: furl hold list lists them", args[0])
			})
			if err != nil {
				return err
			}
			f.Program.Audited.FoundTenant(released.Tenant)
			f.Program.Audited.Found(released.Session)
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), jsonHoldOf(released))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "released %s: %s\n", released.ID, tenants.HeldWords(&released))
			return nil
		},
	}
	f.Add(cmd)
	return cmd
}
