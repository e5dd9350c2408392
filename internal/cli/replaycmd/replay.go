// Package replaycmd has the commands that measure: replay, eval, models and sim.
package replaycmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/report"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/replay"
)

// replayFlags are the flags of furl replay.
type replayFlags struct {
	cmdline.Pricing
	program  cmdline.Program
	policies []string
	group    string
	windows  []string
	json     bool
	html     string
	each     bool
	quiet    bool
	timing   bool
	verbose  bool
	strict   bool
	pings    int
	hour     bool
	config   string
	since    string
	project  string
	recall   bool
	above    []string
	tune     tuneFlags
	index    cmdline.IndexFlag
}

// ReplayCommand returns furl replay.
func ReplayCommand(p cmdline.Program) *cobra.Command {
	f := replayFlags{program: p}
	cmd := &cobra.Command{
		Use:   "replay [FILES or FOLDERS…]",
		Short: "Compare the cost of policies on recorded sessions",
		Long: `Replays recorded agent sessions under one policy after another. It needs no
model, no key and no network: it rebuilds each request that the agent made,
applies the policy, simulates the provider's prompt cache, and reports what each
policy costs and what the model would no longer have seen.

Without arguments it replays the sessions that agents have left on this machine;
furl import --help lists them. A request that a fork or a copy repeats counts
once, and a large session is read in parts. Files may be compressed (.gz, .zst).
The format is detected from the content. "-" reads one recording from standard
input.

--tune tries all presets and variants, plots cost against what stays visible,
and chooses a policy; --write sets it in the configuration file. --config also
tries the policy that this file configures.

--policies agents compares auto with what other agents and providers do to a
context: Anthropic's context editing, Claude Code, Codex, pi, Cline, opencode,
Gemini CLI and OpenHands.`,
		Example: `  furl replay                                  sessions found on this machine
  furl replay --since 7d --project furl        those of a week and a folder
  furl replay ~/.claude/projects --html report.html
  furl replay session.jsonl --policy rolling-mask-10 --policy clear-100k
  furl replay --policies agents                what other agents would have done
  furl replay session.jsonl --window 32k --window 128k --json
  furl replay session.jsonl --policy auto --keep-alive 4
  furl replay --tune --keep-lines 90 --write   choose a policy for your sessions
  furl replay sessions/ --policy auto --fail-above cost=5,prompt=180k,blind=10%
  furl replay traj/ --model claude-sonnet-5 --cache-read 0.1 --cache-write 1.25`,
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd, args, &f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.policies, "policy", nil, "policy `name` to try, repeatable: "+strings.Join(p.PolicyNames(), ", ")+" (default all)")
	fl.StringVar(&f.group, "policies", "", "`group` of policies to try: agents, for auto and what other agents do")
	fl.StringSliceVar(&f.windows, "window", nil, "context window in `tokens`, such as 128k, repeatable (default the model's)")
	fl.BoolVar(&f.json, "json", false, "print the report as one JSON object")
	fl.StringVar(&f.html, "html", "", "write a report with charts to this `file`: one HTML page; - is standard output")
	fl.BoolVar(&f.each, "each", false, "also print a table for each recording")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list all skipped files and records")
	fl.BoolVar(&f.timing, "timing", false, "say where the time goes: reading, preparing, and each policy")
	fl.BoolVar(&f.strict, "strict", false, "exit with code 1 if a recording has unreadable records")
	fl.BoolVar(&f.hour, "cache-1h", false, "also try each policy with cache entries of one hour for instructions and tools; =false: try none with them, not even auto, which asks for them by itself; see gateway.cache_1h")
	fl.IntVar(&f.pings, "keep-alive", 0, "also try each policy with at most `N` pings per pause; see gateway.keep_alive")
	fl.StringVar(&f.since, "since", "", "only sessions with a record in the last `age`, such as 12h or 7d")
	fl.StringVar(&f.project, "project", "", "only sessions of agents that worked in this `folder`, or in one of that name")
	fl.BoolVar(&f.recall, "recall", false, "replay for models with recall tools: placeholders have handles")
	fl.StringSliceVar(&f.above, "fail-above", nil, "exit with code 1 if a figure of the policies of --policy, or else of the recommended one, is above its `limit`: cost=DOLLARS, prompt=TOKENS of the largest prompt, blind=PERCENT of edits")
	cmdline.AddConfig(fl, &f.config)
	f.index.Add(fl)
	f.tune.add(fl)
	f.Pricing.Add(fl)
	cmdline.Complete(cmd, "policy", func() []string { return slices.Concat(p.PolicyNames(), p.Set().Unlisted()) })
	cmdline.Complete(cmd, "policies", func() []string { return []string{groupAgents} })
	cmdline.Complete(cmd, "model", cmdline.ModelNames)
	return cmd
}

func runReplay(cmd *cobra.Command, args []string, f *replayFlags) error {
	membudget.SoftLimit(membudget.CommandMemory)
	wish, err := f.tune.goal(cmd)
	if err != nil {
		return err
	}
	own, configFile, err := f.program.LoadConfig(f.config, &f.Pricing)
	if err != nil && !(f.tune.write && errors.Is(err, fs.ErrNotExist)) { // --write creates it
		return err
	}
	above, err := parseCeilings(f.above)
	if err != nil {
		return err
	}
	opts, err := f.Options()
	if err != nil {
		return err
	}
	for _, name := range []string{"policy", "window"} {
		if fl := cmd.Flags().Lookup(name); fl.Changed && fl.Value.String() == "[]" {
			return cmdline.BadUsage("--%s is empty; omit it for the default", name)
		}
	}
	opts.Timing = f.timing
	opts.Recall = f.recall || own != nil && own.Gateway.Recall
	set := f.program.Set()
	if own != nil {
		set = own.Set()
		opts.ModelWindow = own.SetByModel().Window
	}
	if err := f.addGroup(set); err != nil {
		return err
	}
	if opts.Candidates, err = candidates(set, f.tunable(set)); err != nil {
		return err
	}
	if f.config != "" && !f.tune.on {
		opts.Candidates = append(opts.Candidates, configuredCandidate(own))
	}
	if opts.KeepAlive, err = f.keepAlive(); err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("cache-1h"):
		opts.HourCache = serving.HourCache(&f.hour)
	case own != nil && own.Gateway.HourCache != nil && !*own.Gateway.HourCache:
		opts.HourCache = protocol.HourNever
	}
	if f.hour && f.tune.on {
		return cmdline.BadUsage("--tune does not take --cache-1h: it chooses a policy, and the lifetime of cache entries is a setting of the gateway")
	}
	if opts.Windows, err = windows(f.windows); err != nil {
		return err
	}
	if f.tune.on && len(opts.Windows) > 1 {
		return cmdline.BadUsage("--tune takes a single --window")
	}
	if err := f.writable(); err != nil {
		return err // before the replay, which takes long
	}
	src, err := recorded.Sources(cmd.InOrStdin(), args)
	if err != nil {
		return err
	}
	if src.Filter, err = f.filter(); err != nil {
		return err
	}
	bar := cmdline.NewBar(cmd.ErrOrStderr(), f.quiet)
	if bar.Cols > 0 {
		src.Progress = recorded.CountFiles(src.Files, src.Filter.Skip)
		opts.Progress = func(p replay.Progress) { bar.Say(src.Progress.Line(p, time.Now())) }
	}
	decides, ok := f.decides(&opts, configFile)
	if ok {
		src.Index = f.index.Open()
		defer src.Index.Close()
	}
	rep, err := replay.RunInputs(cmd.Context(), src.Inputs(decides), opts)
	bar.Clear()
	if err != nil {
		return err
	}
	rep.Unknown = src.Unknown
	rep.Notes = append(slices.Clone(src.Notes), rep.Notes...)
	if len(rep.Recordings) == 0 {
		return errors.Join(append(src.Failed, src.Nothing("replay"))...)
	}
	switch {
	case !f.tune.on: // the configuration's policy has no name for furl run
		wish.Among = slices.DeleteFunc(candidateNames(opts.Candidates), func(name string) bool { return name == configuredName })
	case len(f.policies) == 0 && !f.tune.own(cmd): // the same as without --tune
		wish.Among = set.Names()
	}
	rep.Choose(wish)
	if f.tune.on {
		rep.Tuning = replay.Tune(rep, wish)
	}
	if err = f.print(cmd.OutOrStdout(), rep); err != nil {
		return err
	}
	if f.tune.write {
		if err = f.keep(cmd.OutOrStdout(), rep.Tuning, betterVariant(rep)); err != nil {
			return err
		}
	}
	if f.strict {
		unreadable := 0
		for i := range rep.Recordings {
			unreadable += rep.Recordings[i].SkippedRecords
		}
		src.Failed = append(src.Failed, recorded.Strictly(unreadable))
	}
	var named []string
	if len(f.policies) > 0 {
		named = slices.DeleteFunc(candidateNames(opts.Candidates), func(name string) bool { return name == "none" && !slices.Contains(f.policies, name) })
	}
	tooHigh := above.check(rep, named)
	if len(args) == 0 && !f.strict { // no files were named
		for _, err := range src.Failed {
			cmdline.Complain(cmd.ErrOrStderr(), err)
		}
		return tooHigh
	}
	// Files that were named and could not be replayed make the command fail
	// after it has reported the others, as with ls and grep.
	return errors.Join(append(src.Failed, tooHigh)...)
}

// groupAgents is the group of policies that do what other agents do.
const groupAgents = "agents"

// addGroup adds the policies of --policies to those of --policy.
func (f *replayFlags) addGroup(set *policy.Set) error {
	switch f.group {
	case "":
	case groupAgents:
		f.policies = slices.Concat([]string{"auto"}, set.Unlisted(), f.policies)
	default:
		return cmdline.BadUsage("invalid --policies %q: expected %s; --policy chooses single policies", f.group, groupAgents)
	}
	return nil
}

// keepAlive returns the largest number of pings per pause, 0 for none.
func (f *replayFlags) keepAlive() (int, error) {
	if f.pings < 0 || f.pings > config.MaxKeepAlive {
		return 0, cmdline.BadUsage("invalid --keep-alive %d: expected a number of pings from 1 to %d", f.pings, config.MaxKeepAlive)
	}
	if f.pings > 0 && f.tune.on {
		return 0, cmdline.BadUsage("--tune does not take --keep-alive: it chooses a policy, and pings are a setting of the gateway")
	}
	return f.pings, nil
}

// print writes the report in each form that the flags ask for.
func (f *replayFlags) print(w io.Writer, rep *replay.Report) error {
	if f.html != "" {
		err := writeTo(f.html, w, func(w io.Writer) error { return report.HTML(w, rep) })
		if err != nil || f.html == "-" {
			return err
		}
	}
	if f.json {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(rep)
	}
	printReport(w, rep, f)
	if f.html != "" {
		fmt.Fprintf(w, "Wrote the report with charts to %s\n", visible.QuoteArg(f.html))
	}
	return nil
}

// writeTo replaces a file atomically; "-" is w. It writes to a link, a device or
// a pipe directly.
func writeTo(path string, w io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(w)
	}
	if !cmdline.Replaceable(path) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".furl-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename
	if err := errors.Join(write(tmp), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}

// candidates returns the policies to try. They include none, since all others
// are compared with it.
func candidates(set *policy.Set, names []string) ([]replay.Candidate, error) {
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	names = once
	if len(names) > 0 { // none is the first row
		names = append([]string{"none"}, slices.DeleteFunc(names, func(name string) bool { return name == "none" })...)
	}
	c, err := replay.Candidates(set, names...)
	if err != nil {
		return nil, cmdline.AsUsage(err)
	}
	return c, nil
}

func candidateNames(candidates []replay.Candidate) []string {
	out := make([]string, len(candidates))
	for i := range candidates {
		out[i] = candidates[i].Name
	}
	return out
}

// windows parses sizes such as 200000, 200k and 1M.
func windows(args []string) ([]int, error) {
	out := make([]int, 0, len(args))
	for _, arg := range args {
		n, err := numbers.ParseTokens(arg)
		if err != nil {
			return nil, cmdline.BadUsage("--window %s: %w", arg, err)
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}
