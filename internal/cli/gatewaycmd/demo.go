package gatewaycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// demoFlags are the flags of furl demo.
type demoFlags struct {
	program        cmdline.Program
	window, policy string
	json           bool
}

// DemoCommand returns furl demo.
func DemoCommand(p cmdline.Program) *cobra.Command {
	f := demoFlags{program: p}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Demonstrate the gateway without a key or a network",
		Long: `Runs a simulated coding agent twice against a simulated provider: directly, until
its context window is full and the provider refuses a request, and through furl.
Then it searches for something that was hidden. Everything runs in this process and
nothing is stored.`,
		Example: "  furl demo\n  furl demo --window 100k --policy clear-100k",
		Args:    cmdline.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.window, "window", "64k", "context window of the model in `tokens`")
	fl.StringVar(&f.policy, "policy", "auto", "policy `name`")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	cmdline.Complete(cmd, "policy", p.PolicyNames)
	return cmd
}

// demoRun is the outcome of one of the two runs.
type demoRun struct {
	Requests int     `json:"requests"`
	Of       int     `json:"of"`
	Refused  string  `json:"refused,omitempty"`
	Prompt   int     `json:"prompt_tokens"`
	Cached   int     `json:"cached_tokens"`
	Largest  int     `json:"largest_prompt"`
	Cost     float64 `json:"cost"`
}

func (f *demoFlags) run(cmd *cobra.Command) error {
	window, err := numbers.ParseTokens(f.window)
	if err != nil {
		return cmdline.BadUsage("--window %s: %w", f.window, err)
	}
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	bar := cmdline.NewBar(cmd.ErrOrStderr(), f.json)
	defer bar.Clear()

	bar.Say("running the agent directly")
	direct, err := playDemo(ctx, window, nil)
	if err != nil {
		return err
	}
	bar.Say("running the agent through furl")
	store := inmem.New()
	defer store.Close()
	all, err := session.New(store, &session.Options{Policy: f.policy, Policies: f.program.Set(), Window: window})
	if err != nil {
		return cmdline.AsUsage(err)
	}
	through, err := playDemo(ctx, window, all)
	if err != nil {
		return err
	}
	s, err := all.Find(ctx, session.Latest)
	if err != nil {
		return err
	}
	hits, err := s.Search(ctx, demoQuestion, session.SearchOptions{Limit: 1})
	if err != nil {
		return err
	}
	bar.Clear()
	if f.json {
		return cmdline.PrintJSON(w, map[string]any{"window": window, "direct": direct, "through_furl": through, "reductions": s.Reductions(), "hits": hits})
	}
	printDemo(w, window, direct, through, s, hits)
	return nil
}

// demoQuestion is the text that the demo searches for. It is in early messages, which
// are hidden at the end.
const demoQuestion = "func"

// playDemo runs the agent, through furl if all is not nil.
func playDemo(ctx context.Context, window int, all *session.Sessions) (run demoRun, err error) {
	recording := demo.Recording().Sessions[0]
	provider := sim.New(&sim.Options{Player: sim.NewPlayback(recording), Window: window, NoAuth: true})
	url, stopSim, err := launch.ListenLocal(provider)
	if err != nil {
		return run, err
	}
	defer stopSim()
	if all != nil {
		up, err := upstream.New(url, nil)
		if err != nil {
			return run, err
		}
		defer up.Close()
		g, err := gateway.New(all, gateway.Upstreams{Anthropic: up}, &gateway.Options{
			Summaries: gateway.SummaryOptions{Off: true}, // the recording cannot write summaries
		})
		if err != nil {
			return run, err
		}
		defer g.Close() // after all replies are recorded
		var stop func()
		if url, stop, err = launch.ListenLocal(g); err != nil {
			return run, err
		}
		defer stop()
	}
	client := &sim.Client{URL: url, Format: furl.FormatAnthropic, Model: demo.Model}
	err = client.Follow(ctx, recording, 0)
	if ctx.Err() != nil {
		return run, ctx.Err()
	}
	if refusal := (*protocol.Refusal)(nil); errors.As(err, &refusal) {
		run.Refused, err = refusal.Message, nil
	}
	for _, r := range recording.Log.Records(0) {
		if _, ok := r.Body.(*furl.Exchange); ok {
			run.Of++
		}
	}
	bill := provider.Bill()
	run.Requests, run.Cost = bill.Requests, bill.Cost
	run.Prompt, run.Cached = bill.Usage.Prompt(), bill.Usage.CacheRead
	for _, r := range provider.Requests() {
		run.Largest = max(run.Largest, r.Usage.Input+r.Usage.CacheRead+r.Usage.CacheWrite+r.Usage.CacheWrite1h)
	}
	return run, err
}

func printDemo(w io.Writer, window int, direct, through demoRun, s *session.Session, hits []session.Hit) {
	say := func(indent int, format string, args ...any) {
		cols := cmdline.Width(w)
		if cols > 0 {
			cols = max(cols-indent, 1)
		}
		for _, l := range cmdline.Wrap(cmdline.Label(fmt.Sprintf(format, args...)), cols) {
			fmt.Fprintf(w, "%*s%s\n", indent, "", l)
		}
	}
	say(0, "A simulated agent makes %s. The context window of its model is %s tokens.", numbers.Count(direct.Of, "request"), numbers.Thousands(window))
	fmt.Fprintln(w)
	t := cmdline.NewTable(w, cmdline.Text(""), cmdline.Number("answered"), cmdline.Number("largest\nprompt"), cmdline.Number("tokens\nsent"), cmdline.Number("cache\nreads"), cmdline.Number("cost"), cmdline.Number("cost per\nrequest"))
	row := func(name string, r demoRun) {
		answered := r.Requests
		if r.Refused != "" {
			answered--
		}
		each := "–"
		if answered > 0 {
			each = fmt.Sprintf("$%.3f", r.Cost/float64(answered))
		}
		t.Add(name, fmt.Sprintf("%d of %d", answered, r.Of), numbers.Thousands(r.Largest), numbers.Thousands(r.Prompt), numbers.Thousands(r.Cached), fmt.Sprintf("$%.2f", r.Cost), each)
	}
	row("directly", direct)
	row("through furl", through)
	t.Print()
	fmt.Fprintln(w)
	if direct.Refused != "" {
		say(0, "Directly, request %d fails: %s", direct.Requests, direct.Refused)
	}
	if through.Refused != "" {
		say(0, "Through furl, request %d fails: %s", through.Requests, through.Refused)
	}
	reductions := s.Reductions()
	say(0, "Through furl: %s in one session, reduced %s.", numbers.Count(s.Info().Messages, "message"), numbers.Count(len(reductions), "time"))
	if len(reductions) > 0 {
		r := reductions[len(reductions)-1]
		say(2, "last reduction: %s, %s → %s tokens; %s", r.Stage, numbers.Thousands(r.Before), numbers.Thousands(r.After), r.Reason)
	}
	for _, h := range hits {
		line, _, _ := strings.Cut(strings.TrimLeft(h.Excerpt, "…"), "\n")
		say(2, "hidden text can be found: %q is in %s, %s …", demoQuestion, h.Handle, cmdline.Truncate(line, 60))
	}
	fmt.Fprintf(w, "\nTo run your own agent through furl: furl run -- claude (or codex, opencode, …)\n")
}
