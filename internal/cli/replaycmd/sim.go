package replaycmd

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/transcript"
)

// simFlags are the flags of furl sim.
type simFlags struct {
	listen, model, window, catalog    string
	play, script, journal             string
	faults                            []string
	agent, noAuth, anyField, json     bool
	steps, parallel, thinking, result int
	seed                              int
	pace                              time.Duration
}

// defaultSimListen is the default address of the simulated provider.
const defaultSimListen = "127.0.0.1:7411"

// SimCommand returns furl sim.
func SimCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim [-- COMMAND ARGUMENTS…]",
		Short: "Run a simulated provider to test agents",
		Long: `Simulates Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini
without a model, a key or a network. It refuses the requests that the real provider
would refuse, with the same status and error text. Tokens, the prompt cache and
prices are simulated; at the end it prints the cost.

By default replies come from a built-in model that calls the offered tools, step
after step, and then ends with a text. --play replies from a recorded session,
--script from a file. --fault simulates failures.

With a command after "--", it listens on a free port, runs the command with
ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GOOGLE_GEMINI_BASE_URL and keys set, and exits
with its exit code.`,
		Example: `  furl sim                                          listen on ` + defaultSimListen + `
  furl sim --window 32k --steps 200                 a long task
  furl sim --model claude-opus-5-5 --fault "529 every=5"
  furl sim --play session.jsonl --journal sim.jsonl
  furl sim --script answers.txtar -- python agent.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return cmdline.BadUsage("furl sim: unexpected argument %q: to run a command, put \"--\" before it; furl sim --help shows examples", cmdline.Printable(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runSim(cmd, args, &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", defaultSimListen, "`address` to listen on")
	fl.StringVar(&f.model, "model", "", "serve this `model` for every request (default the requested model)")
	fl.StringVar(&f.window, "window", "", "context window in `tokens`, such as 32k (default the model's)")
	fl.StringVar(&f.catalog, "catalog", "", "`file` with models that override or add to the built-in catalogue")
	fl.BoolVar(&f.agent, "agent", false, "reply with the built-in agent (the default)")
	fl.StringVar(&f.play, "play", "", "reply from the recording in this `file`; with --agent, the agent replies where the recording has no reply")
	fl.StringVar(&f.script, "script", "", "reply from this script `file`")
	fl.IntVar(&f.steps, "steps", 20, "`number` of steps with calls before the agent ends")
	fl.IntVar(&f.parallel, "parallel", 1, "maximum `number` of parallel calls in a step")
	fl.IntVar(&f.thinking, "thinking", 40, "approximate `words` of thinking in a step, if the request allows thinking")
	fl.IntVar(&f.result, "lines", 40, "`lines` by which tool results grow from step to step")
	fl.StringArrayVar(&f.faults, "fault", nil, "`fault` to simulate, such as \"529 first=2\", repeatable: "+
		"a status, retry-after=, redirect=, overflow, slow=, cut=, error=, ping, split=, args=; first=N or every=N select requests")
	fl.StringVar(&f.journal, "journal", "", "append a JSON line for each request to this `file`; - is standard output")
	fl.BoolVar(&f.noAuth, "no-auth", false, "accept requests without credentials")
	fl.BoolVar(&f.anyField, "any-field", false, "accept unknown fields, like compatible servers")
	fl.IntVar(&f.seed, "seed", 0, "`number` that seeds random choices")
	fl.DurationVar(&f.pace, "pace", 0, "`time` between two events of a stream, such as 20ms")
	fl.BoolVar(&f.json, "json", false, "print the totals as one JSON object")
	cmdline.Complete(cmd, "model", cmdline.ModelNames)
	return cmd
}

// options converts the flags into options of a simulated provider. Close the returned
// journal at the end.
func (f *simFlags) options(cmd *cobra.Command) (*sim.Options, io.Closer, error) {
	o := &sim.Options{NoAuth: f.noAuth, AnyField: f.anyField, Seed: uint64(f.seed), Pace: f.pace}
	for name, n := range map[string]int{"steps": f.steps, "parallel": f.parallel} {
		if n < 1 {
			return nil, nil, cmdline.BadUsage("invalid --%s %d: expected 1 or more", name, n)
		}
	}
	if f.pace < 0 {
		return nil, nil, cmdline.BadUsage("invalid --pace %s: expected 0 or more", f.pace)
	}
	if f.window != "" {
		n, err := numbers.ParseTokens(f.window)
		if err != nil {
			return nil, nil, cmdline.BadUsage("--window %s: %w", f.window, err)
		}
		o.Window = n
	}
	for _, text := range f.faults {
		fault, err := sim.ParseFault(text)
		if err != nil {
			return nil, nil, cmdline.BadUsage("--fault: %w", err)
		}
		o.Faults = append(o.Faults, fault)
	}
	var err error
	if o.Models, err = f.models(); err != nil {
		return nil, nil, err
	}
	if o.Player, err = f.player(); err != nil {
		return nil, nil, err
	}
	if f.journal == "-" {
		o.Journal = cmdline.Flushed{Writer: cmd.OutOrStdout()}
	} else if f.journal != "" {
		file, err := os.OpenFile(f.journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("journal: %w", err)
		}
		o.Journal = file
		return o, file, nil
	}
	return o, io.NopCloser(nil), nil
}

func (f *simFlags) models() (func(string) (furl.Model, bool), error) {
	c := catalog.Default()
	if f.catalog != "" {
		own, err := catalog.Load(f.catalog)
		if err != nil {
			return nil, err
		}
		if c, err = c.Merge(own); err != nil {
			return nil, err
		}
	}
	if f.model == "" {
		return c.Lookup, nil
	}
	m, ok := c.Lookup(f.model)
	if !ok {
		return nil, cmdline.BadUsage("unknown model %q: name a --catalog that has it", f.model)
	}
	return sim.Only(m), nil
}

func (f *simFlags) player() (sim.Player, error) {
	agent := sim.NewAgent(&sim.AgentOptions{
		Steps: f.steps, Parallel: f.parallel, Thinking: max(f.thinking, 0), Lines: max(f.result, 1), Seed: uint64(f.seed),
	})
	switch {
	case f.play != "" && f.script != "", f.script != "" && f.agent:
		return nil, cmdline.BadUsage("--play, --script and --agent exclude each other, except --play with --agent")
	case f.script != "":
		data, err := os.ReadFile(f.script)
		if err != nil {
			return nil, fmt.Errorf("script: %w", err)
		}
		return sim.ParseScript(f.script, data)
	case f.play != "":
		rec, err := new(transcript.Reader).ReadFile(f.play)
		if err != nil {
			return nil, err
		}
		if len(rec.Sessions) == 0 {
			return nil, fmt.Errorf("%s has no session", f.play)
		}
		p := sim.NewPlayback(rec.Sessions...)
		if f.agent {
			p.Otherwise = agent
		}
		return p, nil
	}
	return agent, nil
}

// printBill prints the totals of all requests.
func printBill(w io.Writer, s *sim.Sim) {
	b := s.Bill()
	u := b.Usage
	fmt.Fprintf(w, "%s: %d answered", numbers.Count(b.Requests, "request"), b.Requests-b.Refused-b.Faults)
	if b.Refused > 0 {
		fmt.Fprintf(w, ", %d refused", b.Refused)
	}
	if b.Faults > 0 {
		fmt.Fprintf(w, ", %d with a fault", b.Faults)
	}
	fmt.Fprintln(w)
	if u.Prompt() > 0 {
		fmt.Fprintf(w, "prompt tokens %s: cache reads %s, cache writes %s, uncached %s; output tokens %s\n", numbers.Thousands(u.Prompt()),
			numbers.Thousands(u.CacheRead), numbers.Thousands(u.CacheWrite+u.CacheWrite1h), numbers.Thousands(u.Input), numbers.Thousands(u.Output))
		fmt.Fprintf(w, "cost $%s\n", numbers.Cents(b.Cost))
	}
	if b.ThinkingDropped > 0 {
		fmt.Fprintf(w, "%s dropped because the messages before them had changed\n", numbers.Count(b.ThinkingDropped, "thinking block"))
	}
	entries := s.Requests()
	refused := func(e sim.Entry) bool { return e.Verdict == sim.VerdictRefused && e.Method != "GET" }
	if i := slices.IndexFunc(entries, refused); i >= 0 {
		fmt.Fprintf(w, "first refused request %d (%s): %s\n", entries[i].N, cmdline.Printable(entries[i].Path), cmdline.Printable(entries[i].Error))
	}
}

// billJSON is the JSON of the totals.
type billJSON struct {
	Requests        int       `json:"requests"`
	Answered        int       `json:"answered"`
	Refused         int       `json:"refused"`
	Faults          int       `json:"faults"`
	Counts          int       `json:"counts"`
	Usage           sim.Usage `json:"usage"`
	Cost            float64   `json:"cost"`
	ThinkingDropped int       `json:"thinking_dropped"`
}

func (f *simFlags) printBill(w io.Writer, s *sim.Sim) error {
	if !f.json {
		printBill(w, s)
		return nil
	}
	b := s.Bill()
	return cmdline.PrintJSON(w, billJSON{
		Requests: b.Requests, Answered: b.Requests - b.Refused - b.Faults, Refused: b.Refused, Faults: b.Faults,
		Counts: b.Counts, Usage: sim.Usage(b.Usage), Cost: b.Cost, ThinkingDropped: b.ThinkingDropped,
	})
}
