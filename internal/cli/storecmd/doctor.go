package storecmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/doctor"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/workspace"
)

// doctorFlags are the flags of furl doctor.
type doctorFlags struct {
	cmdline.StoreFlags
	mend           bool
	to, tenantKeys string
	running        string
	ready          bool
}

// DoctorCommand returns furl doctor.
func DoctorCommand(p cmdline.Program) *cobra.Command {
	f := doctorFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a store or a running gateway",
		Long: `Checks the whole store: the database, the order of records, the bytes of every
message, the invariants of every session, and the search index. --mend rebuilds
what can be derived from the records. Records themselves are never changed. It also
lists the types of blocks in conversations that furl does not know.

With --gateway it checks a running gateway instead: whether it is reachable, ready
and up to date, whether it delivers streams without delay, whether its providers
and the issuer of tokens are reachable (without credentials or tokens), and whether
the variables of this shell point to it. Each problem comes with a remedy. With
several addresses, separated by commas, it also says in which keys and settings the
gateways differ.

If the file of a store is truncated or damaged, --mend --to FILE copies all readable
pages to a new store and reports what was saved and what is lost. The damaged file
is not changed. Stop all other furl processes that use it first. A store with
encryption needs its master key for this.

The exit code is 1 if a problem remains.`,
		Example: "  furl doctor\n  furl doctor --mend --json\n  furl doctor --mend --to saved.db\n  furl doctor --gateway\n  furl doctor --gateway http://furl.internal:7410\n  furl doctor --gateway 10.0.0.11:7410,10.0.0.12:7410",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && f.running == doctor.Configured {
				return nil
			}
			return cmdline.AtMost(0)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	cmd.Flags().StringVar(&f.running, "gateway", "", "check the gateway at this `address`, or several, instead of the store (default that of the configuration)")
	cmd.Flags().Lookup("gateway").NoOptDefVal = doctor.Configured
	cmd.Flags().BoolVar(&f.ready, "ready", false, "with --gateway: check only whether it accepts requests, for health checks")
	cmd.Flags().StringVar(&f.to, "to", "", "with --mend: `file` of a new store for the readable part of a damaged one")
	cmd.Flags().StringVar(&f.tenantKeys, "tenant-keys", "", "with --to: `file` of furl encryption export, if the store's own keys are damaged")
	cmd.Flags().BoolVar(&f.mend, "mend", false, "rebuild what can be derived from the records")
	return cmd
}

// run is furl doctor.
func (f *doctorFlags) run(cmd *cobra.Command, args []string) (err error) {
	if f.ready && f.running == "" {
		return cmdline.BadUsage("--ready requires --gateway")
	}
	if f.running != "" {
		if len(args) == 1 {
			f.running = args[0]
		}
		return examineGateways(&f.StoreFlags, cmd, f.running, f.ready)
	}
	ctx := cmd.Context()
	if f.to != "" {
		if !f.mend {
			return cmdline.BadUsage("--to requires --mend")
		}
		return salvage(&f.StoreFlags, cmd, f.to, f.tenantKeys)
	}
	if f.tenantKeys != "" {
		return cmdline.BadUsage("--tenant-keys requires --mend --to")
	}
	store, err := f.Existing(ctx)
	if errors.Is(err, furl.ErrDamaged) {
		return fmt.Errorf("the store is too damaged to open (%w): restore a backup, or copy what is readable to a new file with furl doctor --mend --to FILE", err)
	}
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	progress := cmdline.NewBar(cmd.ErrOrStderr(), f.Json)
	found, unknown := []doctor.Problem{}, make(map[string]int)
	for p, err := range doctor.Store(ctx, &f.Workspace, store, f.mend, unknown, progress.Say) {
		if err != nil {
			return err
		}
		found = append(found, p)
	}
	progress.Clear()
	left := 0
	for _, p := range found {
		if !p.Mended {
			left++
		}
	}
	w := cmd.OutOrStdout()
	if f.Json {
		err = cmdline.PrintJSON(w, map[string]any{"problems": found, "left": left, "unknown_types": unknown})
	} else {
		for _, p := range found {
			fmt.Fprintln(w, p.Words())
		}
		if len(found) == 0 {
			fmt.Fprintln(w, "No problems found.")
		}
		if len(unknown) > 0 {
			fmt.Fprintln(w, doctor.UnknownTypes(unknown, "session")+" A newer version of furl may know them.")
		}
	}
	if left > 0 && err == nil {
		mendable := slices.ContainsFunc(found, func(p doctor.Problem) bool { return p.Derived && !p.Mended })
		lost := slices.ContainsFunc(found, func(p doctor.Problem) bool { return !p.Derived && !p.Mended })
		return complaint(left, mendable && !f.mend, lost)
	}
	return err
}

// complaint returns an error with the number of remaining problems and the remedies.
func complaint(left int, mendable, lost bool) error {
	text := numbers.Count(left, "problem")
	if mendable {
		text += "; furl doctor --mend rebuilds what can be derived from the records"
	}
	if lost {
		text += "; restore what cannot be mended from a backup, or save the rest of a damaged file with --mend --to FILE"
	}
	return errors.New(text)
}

// examineGateways is furl doctor --gateway.
func examineGateways(f *cmdline.StoreFlags, cmd *cobra.Command, addresses string, ready bool) error {
	r, err := doctor.Gateways(cmd.Context(), &f.Workspace, addresses, ready)
	if err != nil || ready {
		return err
	}
	w := cmd.OutOrStdout()
	if f.Json {
		err = cmdline.PrintJSON(w, r)
	} else {
		for _, f := range r.Findings {
			if _, err = fmt.Fprintf(w, "%-8s %s: %s\n", f.State, strings.TrimSpace(f.Gateway+" "+f.Check), f.Text); err == nil && f.Cure != "" {
				_, err = fmt.Fprintf(w, "%-8s   %s\n", "", f.Cure)
			}
		}
	}
	if err == nil && r.Problems > 0 {
		err = errors.New(numbers.Count(r.Problems, "problem"))
	}
	return err
}
