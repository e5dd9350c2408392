package storecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/tally"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// jsonStats is furl stats --json.
type jsonStats struct {
	Place        string `json:"place"`
	Format       int    `json:"format"`
	Sessions     int64  `json:"sessions"`
	Records      int64  `json:"records"`
	Messages     int64  `json:"messages"`
	Copied       int64  `json:"copied_records"`
	MessageBytes int64  `json:"message_bytes"`
	Bodies       int64  `json:"body_bytes"`
	Index        int64  `json:"index_bytes"`
	Vectors      int64  `json:"vector_bytes"`
	Log          int64  `json:"log_bytes"`
	Total        int64  `json:"total_bytes"`
	Unindexed    int    `json:"sessions_to_index"`
	// Billed is what the recorded usage costs in US dollars, nil if no price is known.
	// Savings is nil if no request was counted.
	Billed  *float64             `json:"billed,omitempty"`
	Savings *storage.SavingsLine `json:"savings,omitempty"`
}

// StatsCommand returns furl stats.
func StatsCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the size of the store",
		Long: `Shows the size of the store and its parts, what the sessions were billed, and what
furl has saved. furl usage shows both by day, model and more.`,
		Example: "  furl stats\n  furl stats --json",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			return sizes(&f, cmd, store)
		},
	}
	f.Add(cmd)
	return cmd
}

// sizes prints the size of the store and its parts.
func sizes(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store) error {
	ctx := cmd.Context()
	checker, ok := store.(storage.Checker)
	if !ok {
		return errors.New("this store does not report its size")
	}
	s, err := checker.Stats(ctx)
	if err != nil {
		return err
	}
	unindexed := 0
	if index, ok := store.(storage.Searchable); ok {
		for _, err := range index.Unindexed(ctx, tenants.Local) {
			if err != nil {
				return err
			}
			unindexed++
		}
	}
	copied, err := copiedRecords(ctx, store)
	if err != nil {
		return err
	}
	bill, saved, failed, err := costs(ctx, f, store)
	if err != nil {
		return err
	}
	out := jsonStats{s.Place, s.Format, s.Sessions, s.Records, s.Messages, copied, s.MessageBytes, s.Bodies, s.Index, s.Vectors, s.Log, s.Total, unindexed, bill.Known(), saved}
	w := cmd.OutOrStdout()
	if f.Json {
		return cmdline.PrintJSON(w, out)
	}
	fmt.Fprintf(w, "%s (format %d)\n\n", cmdline.Label(s.Place), s.Format)
	t := cmdline.NewTable(w, cmdline.Text(""), cmdline.Number(""), cmdline.Number(""))
	row := func(what string, n int64, of string) { t.Add(what, numbers.Thousands(int(n)), of) }
	row("sessions", s.Sessions, "")
	row("records", s.Records, "")
	row("messages", s.Messages, numbers.Bytes(s.MessageBytes)+" as sent")
	if copied > 0 {
		row("copied records", copied, "of other sessions, in forks")
	}
	size := func(what string, n int64) { t.Add(what, numbers.Bytes(n), share64(n, s.Total)) }
	size("message bodies", s.Bodies)
	size("search index", s.Index)
	size("embeddings", s.Vectors)
	if s.Log > 0 {
		size("write-ahead log", s.Log)
	}
	size("other", max(0, s.Total-s.Log-s.Bodies-s.Index-s.Vectors))
	size("total", s.Total)
	t.Print()
	if s.MessageBytes > 0 {
		fmt.Fprintf(w, "\nThe store is %.2f times the size of the messages in it.\n", float64(s.Total-s.Log)/float64(s.MessageBytes))
	}
	if bill.Known() != nil {
		words := "Billed by the recorded usage: " + numbers.Money(bill.Cost)
		if bill.Unpriced > 0 {
			words += fmt.Sprintf(", without %s of unknown price", numbers.Count(bill.Unpriced, "request"))
		}
		if failed > 0 {
			words += fmt.Sprintf("; %s could not be read", numbers.Count(failed, "session"))
		}
		cmdline.PrintWrapped(w, words+".", cmdline.Width(w))
	}
	if saved != nil {
		cmdline.PrintWrapped(w, fmt.Sprintf("%s through furl: %s.", numbers.Count(saved.Requests, "request"), operation.SavedWords(saved.Savings)), cmdline.Width(w))
	}
	if unindexed > 0 {
		fmt.Fprintf(w, "%s not fully indexed; the next search indexes the rest.\n", numbers.Count(unindexed, "session"))
	}
	if advice := sizeAdvice(f, s.Total); advice != "" {
		cmdline.PrintWrapped(w, advice, cmdline.Width(w))
	}
	return nil
}

// costs returns what the sessions of all tenants were billed, and what furl has saved, nil
// if no request was counted. failed is the number of sessions that cannot be read.
func costs(ctx context.Context, f *cmdline.StoreFlags, store storage.Store) (bill billed.Bill, saved *storage.SavingsLine, failed int, err error) {
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return bill, nil, 0, err
	}
	o, err := f.SessionOptions(c, file)
	if err != nil {
		return bill, nil, 0, err
	}
	all, err := session.New(store, o)
	if err != nil {
		return bill, nil, 0, err
	}
	among, err := tenants.All(ctx, store)
	if err != nil {
		return bill, nil, 0, err
	}
	models := func(format furl.Format) billed.Models {
		return func(name string) furl.Model { return all.Model(name, format) }
	}
	var sum storage.Ledger
	for _, tenant := range among {
		for s, err := range tally.Stored(ctx, store, tenant, time.Time{}, models, agents.Name, false) {
			if err != nil && s.ID == "" {
				return bill, nil, 0, err
			}
			if err != nil {
				failed++
				continue
			}
			for i := range s.Entries {
				bill.Add(&s.Entries[i])
			}
			if total := s.Info.Ledger.Total(); total.Requests > 0 {
				sum.Add("", "", total)
			}
		}
	}
	if len(sum.Days) > 0 {
		saved = sum.Sum()
	}
	return bill, saved, failed, nil
}

// copiedRecords returns how many records forks have of sessions in the store.
func copiedRecords(ctx context.Context, store storage.Store) (n int64, err error) {
	all, err := tenants.All(ctx, store)
	if err != nil {
		return 0, err
	}
	for _, tenant := range all {
		known := make(map[furl.SessionID]bool)
		var forks []storage.Meta
		for info, err := range store.Sessions(ctx, tenant, storage.SessionQuery{}) {
			if err != nil {
				return 0, err
			}
			if known[info.Session] = true; info.ForkAt > 0 {
				forks = append(forks, info.Meta)
			}
		}
		for _, f := range forks {
			if known[f.ForkOf] {
				n += int64(f.ForkAt)
			}
		}
	}
	return n, nil
}

// largeStore is the size in bytes from which on furl says how to limit a store.
const largeStore = 1_000_000_000

// sizeAdvice says how to limit a large store, "" if it is not large or limited
// already.
func sizeAdvice(f *cmdline.StoreFlags, size int64) string {
	if size < largeStore {
		return ""
	}
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil || c.Retention.Size > 0 || c.Retention.Age > 0 {
		return ""
	}
	set := "set retention (age: 90d, or size: 2GB) in " + cmdline.Label(file)
	if file == "" {
		set = "run furl config init and set retention (age: 90d, or size: 2GB) in the file"
	}
	return fmt.Sprintf("The store takes up %.1f GB. To delete old sessions now: furl delete --older-than 90d. To keep it small: %s.", float64(size)/1e9, set)
}

func share64(part, of int64) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", 100*part/of)
}
