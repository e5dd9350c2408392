package storecmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/operation"
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
	f, o, in := cmdline.NewStoreFlags(p), operation.Named("hold"), &operation.LegalInput{}
	cmd := &cobra.Command{
		Use:   "hold [SESSION]",
		Short: o.Short,
		Long:  o.Long,
		Example: `  furl hold 01jd5 --reason "case 2026-17"
  furl hold --tenant acme --reason "case 2026-17"
  furl hold list
  furl hold release h-7k2m`,
		Args: cmdline.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 && in.Tenant == "" {
				return cmdline.BadUsage("name a session, or a tenant with --tenant")
			}
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			key, err := heldKey(&f, cmd, store, in.Tenant, args)
			if err != nil {
				return err
			}
			return runOnKey(&f, cmd, store, key, o, in)
		},
	}
	f.Add(cmd)
	operation.Flags(cmd.Flags(), in)
	cmd.AddCommand(listHoldsCommand(p), releaseHoldCommand(p))
	return cmd
}

// heldKey returns what a hold is about: a session, or all of a tenant.
func heldKey(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store, tenant string, args []string) (key furl.SessionKey, err error) {
	if tenant != "" {
		if key.Tenant, err = cmdline.TenantNamedOrNew(cmd, store, tenant); err != nil {
			return key, err
		}
		f.Program.Audited.FoundTenant(key.Tenant)
	}
	if len(args) > 0 {
		if key.Session, err = sessionOf(f, cmd, store, key.Tenant, args[0]); err != nil {
			return key, err
		}
		f.Program.Audited.Found(key.Session)
	}
	return key, nil
}

// runOnKey does an operation that does not read the session.
func runOnKey(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store, key furl.SessionKey, o *operation.Operation, in any) error {
	all, err := f.Sessions(store)
	if err != nil {
		return err
	}
	call := &operation.Call{Context: cmd.Context(), Sessions: all, Key: key, By: cmdline.ShellUser()}
	err = run(cmd, call, o, in, f.Json)
	if err == nil && key == (furl.SessionKey{}) { // it has found it
		f.Program.Audited.FoundTenant(call.Key.Tenant)
		f.Program.Audited.Found(call.Key.Session)
	}
	return err
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
				return []string{h.ID, operation.HeldWords(&h.Hold), h.Created.Format(time.DateOnly), h.By, h.Reason}
			})
		},
	}
	f.Add(cmd)
	return cmd
}

func releaseHoldCommand(p cmdline.Program) *cobra.Command {
	f, o := cmdline.NewStoreFlags(p), operation.Named("release")
	in := &operation.ReleaseInput{}
	cmd := &cobra.Command{
		Use:     "release HOLD",
		Short:   o.Short,
		Long:    o.Long,
		Example: "  furl hold release h-7k2m",
		Args:    cmdline.Exactly(1, "the id of a hold; furl hold list lists them"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			in.Hold = args[0]
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			return runOnKey(&f, cmd, store, furl.SessionKey{}, o, in)
		},
	}
	f.Add(cmd)
	operation.Flags(cmd.Flags(), in)
	return cmd
}
