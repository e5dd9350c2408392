package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
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

// defaultSimListen is where the sim listens unless told otherwise.
const defaultSimListen = "127.0.0.1:7411"

func simCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim [-- COMMAND ARGUMENTS…]",
		Short: "Run a simulated provider to test agents",
		Long: `Serves Anthropic Messages, OpenAI Chat Completions and OpenAI Responses without
a model, a key or a network, and is strict about it: a request that the real
provider would refuse is refused here, with its status and its words. Tokens,
the prompt cache and prices are simulated, and at the end there is a bill.

By default a small agent answers: it calls the tools it is offered, step after
step, and then ends with a text. --play answers from a recorded session,
--script from a file. --fault lets things go wrong.

With a command after "--" the sim listens on a free port, runs the command with
ANTHROPIC_BASE_URL, OPENAI_BASE_URL and keys set to reach it, and ends with it,
and with its exit code.`,
		Example: `  furl sim                                          listen on ` + defaultSimListen + `
  furl sim --window 32k --steps 200                 an agent with much to do
  furl sim --model claude-opus-5-5 --fault "529 every=5"
  furl sim --play session.jsonl --journal sim.jsonl
  furl sim --script answers.txtar -- python agent.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return badUsage(`furl sim takes no arguments but a command after "--"; furl sim --help shows examples`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runSim(cmd, args, &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", defaultSimListen, "`address` to listen on")
	fl.StringVar(&f.model, "model", "", "serve this `model` whatever a request names; by default the catalogue's, each by its name")
	fl.StringVar(&f.window, "window", "", "context window in `tokens`, such as 32k (default the model's)")
	fl.StringVar(&f.catalog, "catalog", "", "`file` with models that override or add to the built-in catalogue")
	fl.BoolVar(&f.agent, "agent", false, "answer by the built-in agent (the default)")
	fl.StringVar(&f.play, "play", "", "answer from the recording in this `file`, and what it has no answer to by --agent if that is given")
	fl.StringVar(&f.script, "script", "", "answer from this script `file`")
	fl.IntVar(&f.steps, "steps", 20, "`number` of steps with calls before the agent ends")
	fl.IntVar(&f.parallel, "parallel", 1, "most calls in one step of the agent, a `number`")
	fl.IntVar(&f.thinking, "thinking", 40, "about how many `words` the agent thinks in a step, if a request allows thinking")
	fl.IntVar(&f.result, "lines", 40, "`lines` by which the output of the agent's commands grows from step to step")
	fl.StringArrayVar(&f.faults, "fault", nil, "something that goes wrong, such as \"529 first=2\", repeatable: "+
		"a status, retry-after=, redirect=, overflow, slow=, cut=, error=, ping, split=, args=; first=N or every=N says when")
	fl.StringVar(&f.journal, "journal", "", "append a line of JSON for each request to this `file`; - is standard output")
	fl.BoolVar(&f.noAuth, "no-auth", false, "take requests without credentials")
	fl.BoolVar(&f.anyField, "any-field", false, "take fields that the provider does not know, as compatible servers do")
	fl.IntVar(&f.seed, "seed", 0, "change what is random, a `number`")
	fl.DurationVar(&f.pace, "pace", 0, "`time` between two events of a stream, such as 20ms")
	fl.BoolVar(&f.json, "json", false, "print the bill as one JSON object")
	complete(cmd, "model", catalog.Default().Names)
	return cmd
}

// options turns the flags into a sim's, with what is to be closed at the end.
func (f *simFlags) options(cmd *cobra.Command) (*sim.Options, io.Closer, error) {
	o := &sim.Options{NoAuth: f.noAuth, AnyField: f.anyField, Seed: uint64(f.seed), Pace: f.pace}
	for name, n := range map[string]int{"steps": f.steps, "parallel": f.parallel} {
		if n < 1 {
			return nil, nil, badUsage("--%s %d: want a number from 1 on", name, n)
		}
	}
	if f.pace < 0 {
		return nil, nil, badUsage("--pace %s: time does not run backwards", f.pace)
	}
	if f.window != "" {
		n, err := parseTokens(f.window)
		if err != nil {
			return nil, nil, badUsage("--window %s: %w", f.window, err)
		}
		o.Window = n
	}
	for _, text := range f.faults {
		fault, err := sim.ParseFault(text)
		if err != nil {
			return nil, nil, badUsage("--fault: %w", err)
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
		o.Journal = flushed{cmd.OutOrStdout()}
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

// flushed is an output whose readers wait for each line.
type flushed struct{ io.Writer }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	if o, ok := f.Writer.(*output); ok && err == nil {
		err = o.Flush()
	}
	return n, err
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
		return nil, badUsage("--model %s is not in the catalogue; give a --catalog with it", f.model)
	}
	return sim.Only(m), nil
}

func (f *simFlags) player() (sim.Player, error) {
	agent := sim.NewAgent(&sim.AgentOptions{
		Steps: f.steps, Parallel: f.parallel, Thinking: max(f.thinking, 0), Lines: max(f.result, 1), Seed: uint64(f.seed),
	})
	switch {
	case f.play != "" && f.script != "", f.script != "" && f.agent:
		return nil, badUsage("--play, --script and --agent answer each in its own way; give one (or --play with --agent)")
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
			return nil, fmt.Errorf("%s holds no session", f.play)
		}
		p := sim.NewPlayback(rec.Sessions...)
		if f.agent {
			p.Otherwise = agent
		}
		return p, nil
	}
	return agent, nil
}

// printBill says what all requests together came to.
func printBill(w io.Writer, s *sim.Sim) {
	b := s.Bill()
	u := b.Usage
	fmt.Fprintf(w, "%s: %d answered", plural(b.Requests, "request"), b.Requests-b.Refused-b.Faults)
	if b.Refused > 0 {
		fmt.Fprintf(w, ", %d refused", b.Refused)
	}
	if b.Faults > 0 {
		fmt.Fprintf(w, ", %d with a fault", b.Faults)
	}
	fmt.Fprintln(w)
	if u.Prompt() > 0 {
		fmt.Fprintf(w, "prompts of %s tokens: %s read from the cache, %s written to it, %s fresh; %s tokens of output\n", thousands(u.Prompt()),
			thousands(u.CacheRead), thousands(u.CacheWrite+u.CacheWrite1h), thousands(u.Input), thousands(u.Output))
		fmt.Fprintf(w, "bill $%s\n", cents(b.Cost))
	}
	if b.ThinkingDropped > 0 {
		fmt.Fprintf(w, "%s left out because what they were bound to had changed\n", plural(b.ThinkingDropped, "thinking block"))
	}
	entries := s.Requests()
	refused := func(e sim.Entry) bool { return e.Verdict == sim.VerdictRefused }
	if i := slices.IndexFunc(entries, refused); i >= 0 {
		fmt.Fprintf(w, "first refusal, request %d (%s): %s\n", entries[i].N, printable(entries[i].Path), printable(entries[i].Error))
	}
}

// cents are dollars with as many digits as tell something.
func cents(d float64) string {
	digits := 2
	if d > 0 && d < 1 {
		digits = min(6, 2-int(math.Floor(math.Log10(d))))
	}
	return fmt.Sprintf("%.*f", digits, d)
}

// billJSON is the bill for programs.
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
	return printJSON(w, billJSON{
		Requests: b.Requests, Answered: b.Requests - b.Refused - b.Faults, Refused: b.Refused, Faults: b.Faults,
		Counts: b.Counts, Usage: sim.Usage(b.Usage), Cost: b.Cost, ThinkingDropped: b.ThinkingDropped,
	})
}
