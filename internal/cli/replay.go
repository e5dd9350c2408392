package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/report"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// replayFlags are the flags of furl replay.
type replayFlags struct {
	pricing
	program  program
	policies []string
	windows  []string
	json     bool
	html     string
	each     bool
	quiet    bool
	config   string
	tune     tuneFlags
}

func replayCommand(p program) *cobra.Command {
	f := replayFlags{program: p}
	cmd := &cobra.Command{
		Use:   "replay [FILES or FOLDERS…]",
		Short: "Compare the cost of policies on recorded sessions",
		Long: `Plays recorded agent sessions again under one policy after another, without a
model, a key or a network: each request the agent made is rebuilt, the policy
acts as it would have acted then, the provider's prompt cache is simulated, and
what was saved and lost is counted.

Without arguments it looks where Claude Code, Codex, opencode, pi and Gemini CLI
keep their sessions. Files may be compressed (.gz, .zst); the format is
recognised from the content. "-" reads one recording from standard input.

With --tune it tries every setting there is, draws cost against what is kept,
and chooses one; --write puts it into the configuration. With --config, what
that file says is tried beside the presets.`,
		Example: `  furl replay                                  sessions found on this machine
  furl replay ~/.claude/projects --html report.html
  furl replay session.jsonl --policy rolling-mask-10 --policy clear-100k
  furl replay session.jsonl --window 32k --window 128k --json
  furl replay --tune --keep-lines 90 --write   the setting for your own sessions
  furl replay traj/ --model claude-sonnet-5 --cache-read 0.1 --cache-write 1.25`,
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd, args, &f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.policies, "policy", nil, "`name` of a policy to try, repeatable: "+strings.Join(p.policyNames(), ", ")+" (default all)")
	fl.StringSliceVar(&f.windows, "window", nil, "context window in `tokens`, repeatable, such as 128k (default the model's)")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	fl.StringVar(&f.html, "html", "", "write a report with pictures to this `file`: one page, no network; - is standard output")
	fl.BoolVar(&f.each, "each", false, "print a table per recording too")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	addConfig(fl, &f.config)
	f.tune.add(fl)
	f.pricing.add(fl)
	complete(cmd, "policy", p.policyNames)
	complete(cmd, "model", catalog.Default().Names)
	return cmd
}

func runReplay(cmd *cobra.Command, args []string, f *replayFlags) error {
	softLimit(commandMemory)
	wish, err := f.tune.wish(cmd)
	if err != nil {
		return err
	}
	own, _, err := f.program.loadConfig(f.config, &f.pricing)
	if err != nil && !(f.tune.write && errors.Is(err, fs.ErrNotExist)) { // it will be made
		return err
	}
	opts, err := f.options()
	if err != nil {
		return err
	}
	for _, name := range []string{"policy", "window"} {
		if fl := cmd.Flags().Lookup(name); fl.Changed && fl.Value.String() == "[]" {
			return badUsage("--%s is empty; leave it out for the default", name)
		}
	}
	set := f.program.set()
	if own != nil {
		set = own.Set()
	}
	if opts.Candidates, err = candidates(set, f.tunable(set)); err != nil {
		return err
	}
	if f.config != "" && !f.tune.on {
		opts.Candidates = append(opts.Candidates, configuredCandidate(own))
	}
	if opts.Windows, err = windows(f.windows); err != nil {
		return err
	}
	if f.tune.on && len(opts.Windows) > 1 {
		return badUsage("--tune chooses for one --window")
	}
	if err := f.writable(); err != nil {
		return err // before all the work
	}
	src, err := sources(cmd.InOrStdin(), args)
	if err != nil {
		return err
	}
	bar := newBar(cmd.ErrOrStderr(), f.quiet)
	opts.Progress = bar.show
	rep, err := replay.Run(cmd.Context(), src.recordings, opts)
	bar.clear()
	if err != nil {
		return err
	}
	rep.Unknown = src.unknown
	if src.note != "" {
		rep.Notes = append([]string{src.note}, rep.Notes...)
	}
	if len(rep.Recordings) == 0 {
		return errors.Join(append(src.failed, src.nothing())...)
	}
	if f.tune.on {
		rep.Tuning = replay.Tune(rep, wish)
	}
	if err = f.print(cmd.OutOrStdout(), rep); err != nil {
		return err
	}
	if f.tune.on {
		if err = f.keep(cmd.OutOrStdout(), rep.Tuning); err != nil {
			return err
		}
	}
	if len(args) == 0 { // no files were named
		for _, err := range src.failed {
			complain(cmd.ErrOrStderr(), err)
		}
		return nil
	}
	// What could be replayed was; what was asked for and could not makes
	// the command fail all the same, as with ls and grep.
	return errors.Join(src.failed...)
}

// print gives the report in every form that was asked for.
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
		fmt.Fprintf(w, "The report with pictures is in %s\n", quoteArg(f.html))
	}
	return nil
}

// writeTo writes a file whole or not at all; "-" is w. A link, a device or a pipe
// is written to as it is.
func writeTo(path string, w io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(w)
	}
	if !replaceable(path) {
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
	defer os.Remove(tmp.Name()) // fails once it has its real name
	if err := errors.Join(write(tmp), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}

// candidates are the policies to try; none is always among them, since all
// others are compared with it.
func candidates(set *policy.Set, names []string) ([]replay.Candidate, error) {
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	names = once
	if len(names) > 0 && !slices.Contains(names, "none") {
		names = append([]string{"none"}, names...)
	}
	c, err := replay.Candidates(set, names...)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// windows reads sizes such as 200000, 200k and 1M.
func windows(args []string) ([]int, error) {
	out := make([]int, 0, len(args))
	for _, arg := range args {
		n, err := parseTokens(arg)
		if err != nil {
			return nil, badUsage("--window %s: %w", arg, err)
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

func parseTokens(s string) (int, error) {
	unit := 1.0
	digits := strings.TrimRight(s, "kKmM")
	switch strings.ToLower(s[len(digits):]) {
	case "k":
		unit = 1e3
	case "m":
		unit = 1e6
	case "":
	default:
		return 0, errors.New("not a number of tokens such as 128k")
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n*unit >= 1 && n*unit <= 1e9) { // NaN is neither
		return 0, errors.New("not a number of tokens such as 128k")
	}
	return int(n * unit), nil
}

// source is where recordings come from, and what went wrong on the way.
type source struct {
	files      []string
	recordings func(func(*transcript.Recording) bool)
	unknown    []string
	failed     []error
	note       string
}

// nothing says why there is nothing to replay.
func (s *source) nothing() error {
	switch {
	case len(s.unknown) > 0:
		return fmt.Errorf("nothing to replay: no known format in %s", strings.Join(s.unknown[:min(len(s.unknown), 5)], ", "))
	case len(s.failed) > 0:
		return errors.New("nothing to replay")
	}
	return fmt.Errorf("nothing to replay: no files in %s", strings.Join(s.files, ", "))
}

// walk reads standard input for "-", then files and folders.
func walk(in io.Reader, paths []string) iter.Seq2[*transcript.Recording, error] {
	return func(yield func(*transcript.Recording, error) bool) {
		if slices.Contains(paths, "-") && !yield(transcript.Read(stdin, in)) {
			return
		}
		files := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "-" })
		for rec, err := range transcript.Walk(files...) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

// stdin is what a recording from standard input is called.
const stdin = "standard input"

// sources are the files and folders named, or what installed agents keep, or
// a session of furl's own.
func sources(in io.Reader, args []string) (*source, error) {
	s := &source{files: args}
	if len(args) == 0 {
		s.files = agents.Folders()
		s.note = "These are sessions found on this machine: " + strings.Join(s.files, ", ")
	}
	for _, path := range args {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w; give a recording or a folder of recordings", err)
		}
	}
	s.recordings = func(yield func(*transcript.Recording) bool) {
		found := false
		for rec, err := range walk(in, s.files) {
			if unknown := (*transcript.UnknownFilesError)(nil); errors.As(err, &unknown) {
				s.unknown = append(s.unknown, unknown.Files...)
				continue
			}
			if err != nil {
				s.failed = append(s.failed, err)
				continue
			}
			found = true
			if !yield(rec) {
				return
			}
		}
		if !found && len(args) == 0 {
			s.note = "No recorded sessions were found on this machine; this is a session furl made up. Give files or folders to see your own."
			yield(demo.Recording())
		}
	}
	return s, nil
}
