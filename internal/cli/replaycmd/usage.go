package replaycmd

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/tally"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// usageFlags are the flags of furl usage.
type usageFlags struct {
	cmdline.StoreFlags
	pricing  cmdline.Pricing
	index    cmdline.IndexFlag
	by       []string
	since    string
	until    string
	timezone string
	project  string
	from     string
	csv      bool
	causes   bool
	savings  bool
	quiet    bool
}

// Where usage is read from.
const (
	fromAll        = "all"
	fromStore      = "store"
	fromRecordings = "recordings"
)

// UsageCommand returns furl usage.
func UsageCommand(p cmdline.Program) *cobra.Command {
	f := usageFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "usage [FILES or FOLDERS…]",
		Short: "Show what sessions have cost, by day, model and more",
		Long: `Shows the tokens and the cost of all requests that agents have made: of the sessions
that they have recorded on this machine, and of those that ran through furl. A
request that both have counts once, and so does one that a fork or a copy repeats.
With FILES or FOLDERS it shows the recordings in them only.

Costs are list prices, by the usage that providers reported and the terms of each
request. A subscription does not pay them. --by groups requests by one or more of
` + strings.Join(groupings(), ", ") + `. Grouped by session,
sub-agents follow the session that started them. Days are those of --timezone.

--causes shows what the cost is for: instructions, the user's messages, replies,
thinking, each tool's calls and results, compactions and retries. It reads all
files, and estimates the sizes of the parts of a prompt.

--savings shows what furl has saved in the store by day, agent and model: the
requests as sent, compared with the same requests as the client sent them.`,
		Example: `  furl usage                               by day
  furl usage --since 7d --by model
  furl usage --by month --by project --csv > usage.csv
  furl usage --by session --project furl   with the sub-agents of each session
  furl usage ~/.claude/projects --json
  furl usage --from store --since 2026-11-01 --until 2026-11-30
  furl usage --causes --since 7d           tools, instructions, thinking, …
  furl usage --savings --since 7d`,
		RunE: func(cmd *cobra.Command, args []string) error { return runUsage(cmd, args, &f) },
	}
	f.Add(cmd)
	f.AddTenant(cmd)
	fl := cmd.Flags()
	fl.StringSliceVar(&f.by, "by", []string{string(tally.Day)}, "`grouping`, repeatable: "+strings.Join(groupings(), ", "))
	fl.StringVar(&f.since, "since", "", "only requests of the last `age`, such as 7d, or from a day on, such as 2026-11-23")
	fl.StringVar(&f.until, "until", "", "only requests up to a `day`, such as 2026-11-30, or older than an age, such as 7d")
	fl.StringVar(&f.timezone, "timezone", "", "time `zone` of days, such as UTC or Europe/Berlin (default $TZ, else the machine's)")
	fl.StringVar(&f.project, "project", "", "only sessions of agents that worked in this `folder`, or in one of that name")
	fl.StringVar(&f.from, "from", fromAll, "`source`: all, store for what ran through furl, or recordings")
	fl.BoolVar(&f.csv, "csv", false, "print CSV")
	fl.BoolVar(&f.causes, "causes", false, "show what the cost is for: tools, instructions, thinking and others")
	fl.BoolVar(&f.savings, "savings", false, "show what furl has saved, by day, agent and model")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	f.index.Add(fl)
	f.pricing.AddCatalog(fl)
	cmdline.Complete(cmd, "by", groupings)
	cmdline.Complete(cmd, "from", func() []string { return []string{fromAll, fromStore, fromRecordings} })
	return cmd
}

func groupings() []string {
	names := make([]string, len(tally.All))
	for i, by := range tally.All {
		names[i] = string(by)
	}
	return names
}

func runUsage(cmd *cobra.Command, args []string, f *usageFlags) error {
	membudget.SoftLimit(membudget.CommandMemory)
	if os.Getenv("GOGC") == "" { // one file at a time is kept, within the limit, so collecting less often saves a fifth of the time
		debug.SetGCPercent(400)
	}
	now := time.Now()
	if f.savings {
		return f.runSavings(cmd, args, now)
	}
	q, err := f.query(now)
	if err != nil {
		return err
	}
	if f.from != fromAll && f.from != fromStore && f.from != fromRecordings {
		return cmdline.BadUsage("unknown source %q in --from: choose one of %s, %s, %s", f.from, fromAll, fromStore, fromRecordings)
	}
	if f.csv && f.Json {
		return cmdline.BadUsage("--csv and --json exclude each other")
	}
	if cmd.Flags().Changed("tenant") { // recordings have none
		f.from = fromStore
	}
	if len(args) > 0 && f.from != fromAll {
		return cmdline.BadUsage("--from and --tenant do not go with FILES or FOLDERS: only these are read")
	}
	models, key, keyed, err := f.models()
	if err != nil {
		return err
	}
	if f.causes && cmd.Flags().Changed("by") {
		return cmdline.BadUsage("--causes does not take --by")
	}
	sum := newUsageSum(q, f.causes)
	var known tally.Known
	var problems []error
	if len(args) == 0 && f.from != fromRecordings {
		failed, err := f.addStore(cmd, sum, &known, q.Since, models)
		if err != nil && !(errors.Is(err, workspace.ErrNoStore) && f.from == fromAll && f.Place == "") {
			return err
		}
		problems = append(problems, failed...)
	}
	var src *recorded.Source
	if len(args) > 0 || f.from != fromStore {
		if src, err = recorded.Sources(cmd.InOrStdin(), args); err != nil {
			return err
		}
		if keyed {
			src.Index = f.index.Open()
			defer src.Index.Close()
		}
		bar := cmdline.NewBar(cmd.ErrOrStderr(), f.quiet)
		for s, log := range bills(src, key, func(s *transcript.Session) billed.Models { return models(s.Wire) }, f.causes) {
			bar.Say("reading " + cmdline.Label(s.ID))
			known.Recorded(&s)
			if err := sum.add(&s, log, models); err != nil {
				problems = append(problems, err)
			}
		}
		bar.Clear()
	}
	rep := sum.groups.Report()
	if f.causes {
		err = f.printCauses(cmd.OutOrStdout(), sum.causes.Report())
	} else {
		err = f.print(cmd.OutOrStdout(), rep, q.Location, src)
	}
	if err != nil {
		return err
	}
	if src == nil || len(args) == 0 { // no files were named
		if src != nil {
			problems = append(problems, src.Failed...)
		}
		for _, err := range problems {
			cmdline.Complain(cmd.ErrOrStderr(), err)
		}
		return nil
	}
	if len(src.Failed) == 0 && len(src.Unknown) > 0 && rep.Total == (tally.Sum{}) {
		return src.Nothing("count")
	}
	return errors.Join(append(problems, src.Failed...)...)
}

// usageSum adds up requests. causes is nil unless they are asked for.
type usageSum struct {
	groups *tally.Collector
	causes *tally.CauseCollector
}

func newUsageSum(q tally.Query, causes bool) *usageSum {
	s := &usageSum{groups: tally.NewCollector(q)}
	if causes {
		s.causes = tally.NewCauseCollector(q, token.O200k())
	}
	return s
}

// logOf returns the records of a session and their format.
type logOf func() ([]furl.Record, furl.Format)

func (s *usageSum) add(b *billed.Session, log logOf, models func(furl.Format) billed.Models) error {
	s.groups.Add(b)
	if s.causes == nil {
		return nil
	}
	records, format := log()
	return s.causes.Add(b, records, models(format))
}

// bills yields the sessions of a source, if asked for with their logs.
func bills(src *recorded.Source, key string, models func(*transcript.Session) billed.Models, logs bool) iter.Seq2[billed.Session, logOf] {
	return func(yield func(billed.Session, logOf) bool) {
		if !logs {
			for s := range src.Bills(key, models) {
				if !yield(s, nil) {
					return
				}
			}
			return
		}
		for s, log := range src.BillsWithLogs(models) {
			if !yield(s, func() ([]furl.Record, furl.Format) { return log.Log.Records(0), log.Wire }) {
				return
			}
		}
	}
}

// query returns what the flags ask for.
func (f *usageFlags) query(now time.Time) (q tally.Query, err error) {
	for _, name := range f.by {
		by, err := tally.Parse(strings.TrimSpace(name))
		if err != nil {
			return q, cmdline.BadUsage("--by: %w", err)
		}
		if !slices.Contains(q.By, by) {
			q.By = append(q.By, by)
		}
	}
	if q.Location, err = f.location(); err != nil {
		return q, err
	}
	if q.Since, err = timeOf(f.since, now, q.Location, 0); err != nil {
		return q, cmdline.BadUsage("--since %s: %w", f.since, err)
	}
	if q.Until, err = timeOf(f.until, now, q.Location, 1); err != nil {
		return q, cmdline.BadUsage("--until %s: %w", f.until, err)
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, cmdline.BadUsage("--since %s is after --until %s", f.since, f.until)
	}
	if f.project != "" {
		q.InProject, err = recorded.ProjectFilter(f.project)
	}
	return q, err
}

// location returns the time zone of days.
func (f *usageFlags) location() (*time.Location, error) {
	if f.timezone == "" || strings.EqualFold(f.timezone, "local") {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(f.timezone)
	if err != nil {
		return nil, cmdline.BadUsage("unknown time zone %q: expected a name such as UTC or Europe/Berlin", f.timezone)
	}
	return zone, nil
}

// timeOf returns the time of an age before now, or the start of a day. days are added to a day.
func timeOf(text string, now time.Time, zone *time.Location, days int) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return day.AddDate(0, 0, days), nil
	}
	age, err := numbers.ParseAge(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w, or a day such as 2026-11-23", err)
	}
	return now.Add(-age), nil
}

// models describes the models of a format. key identifies their prices, unless ok is false.
func (f *usageFlags) models() (models func(furl.Format) billed.Models, key string, ok bool, err error) {
	if _, _, err := f.Program.LoadConfig(f.Config, &f.pricing); err != nil {
		return nil, "", false, err
	}
	o, err := f.pricing.Options()
	if err != nil {
		return nil, "", false, err
	}
	hash, ok := cmdline.HashOf(f.pricing.CatalogFile())
	sum := sha256.Sum256([]byte(hash))
	return describe(o.Catalog), string(sum[:]), ok, nil
}

// describe describes models by the catalogue, each once.
func describe(c *catalog.Catalog) func(furl.Format) billed.Models {
	formats := make(map[furl.Format]billed.Models)
	return func(format furl.Format) billed.Models {
		if formats[format] == nil {
			known := make(map[string]furl.Model)
			formats[format] = func(name string) furl.Model {
				m, ok := known[name]
				if !ok {
					m = c.Describe(name, format)
					known[name] = m
				}
				return m
			}
		}
		return formats[format]
	}
}

// addStore adds the sessions of the store. failed are the sessions that cannot be read.
func (f *usageFlags) addStore(cmd *cobra.Command, sum *usageSum, known *tally.Known, since time.Time, models func(furl.Format) billed.Models) (failed []error, err error) {
	store, err := f.Existing(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer workspace.CloseStore(store, &err)
	whose, err := f.Whose(cmd.Context(), store)
	if err != nil {
		return nil, err
	}
	for s, err := range tally.Stored(cmd.Context(), store, whose, since, models, agents.Name, sum.causes != nil) {
		if err != nil && s.ID == "" {
			return failed, err
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		known.Stored(&s)
		log := func() ([]furl.Record, furl.Format) { return s.Records, s.Info.Format }
		if err := sum.add(&s.Session, log, models); err != nil {
			failed = append(failed, err)
		}
	}
	return failed, nil
}

// runSavings prints what furl has saved.
func (f *usageFlags) runSavings(cmd *cobra.Command, args []string, now time.Time) (err error) {
	for _, name := range []string{"by", "causes", "until", "project", "from", "csv", "timezone", "catalog", "no-index"} {
		if cmd.Flags().Changed(name) {
			return cmdline.BadUsage("--savings does not take --%s", name)
		}
	}
	if len(args) > 0 {
		return cmdline.BadUsage("--savings is about the store and takes no files; furl replay shows what policies would save on recordings")
	}
	since, err := timeOf(f.since, now, time.Local, 0)
	if err != nil {
		return cmdline.BadUsage("--since %s: %w", f.since, err)
	}
	first := ""
	if !since.IsZero() {
		first = since.Format(time.DateOnly)
	}
	store, err := f.Existing(cmd.Context())
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	return savingsOf(&f.StoreFlags, cmd, store, f.Tenant, first)
}
