package replaycmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/eval"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/policy"
)

// exitBudget is the exit code of furl eval if the budget was reached before all runs.
const exitBudget = 3

// evalFlags are the flags of furl eval.
type evalFlags struct {
	program                            cmdline.Program
	policies, env, sets                []string
	runs                               int
	seed                               uint64
	budget, results, home, config      string
	anthropic, openai, window, example string
	simulate, smoke, report, keep      bool
	each, json, list                   bool
}

// EvalCommand returns furl eval.
func EvalCommand(p cmdline.Program) *cobra.Command {
	f := evalFlags{program: p}
	cmd := &cobra.Command{
		Use:                   "eval [TASKS] [flags] -- COMMAND ARGUMENTS…",
		DisableFlagsInUseLine: true,
		Short:                 "Compare success rates of an agent under policies",
		Long: `Runs the tasks of a folder through an agent, several times with each policy, and
compares how many are solved, with confidence intervals, and what they cost. A task
is a folder with a task.yaml: an instruction, a repository, and a command that checks
the result. The policy none hides nothing; its runs go through the gateway too, so
that all are measured in the same way.

The agent's command gets the instruction in place of {instruction}, or on standard
input. Each run has a fresh copy of the repository, an empty home folder, and a
gateway of its own. The copies keep runs apart. They are not a security sandbox: the
agent has all rights of your user.

Each finished run is saved in the folder --results. The same command continues an
evaluation that was interrupted. --tasks names a built-in task set, go or python, in
place of the folder; --list shows their tasks. --smoke runs a small task set with a
simulated provider, without a key.

Exit codes: 0 all runs are finished, whether solved or not, 1 failure, 2 usage error,
3 stopped by the budget, 130 interrupted.`,
		Example: `  furl eval --smoke
  furl eval --tasks go --budget 20 -- claude -p {instruction}
  furl eval --example tasks                write an example task set
  furl eval tasks --budget 10 -- codex exec {instruction}
  furl eval tasks --policy none --policy rolling --runs 9 --budget 50 -- ./agent
  furl eval tasks --sim -- furl chat -p "" --yes --policy none
  furl eval --report --results furl-eval`,
		Args: f.checkArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.policies, "policy", nil, "policy `name`, repeatable (default none and auto)")
	fl.IntVar(&f.runs, "runs", 5, "`number` of runs of each task with each policy")
	fl.StringVar(&f.budget, "budget", "", "most to spend in US `dollars` at list prices, or none for no limit (required without --sim)")
	fl.StringVar(&f.results, "results", "", "`folder` for the results (default furl-eval)")
	fl.Uint64Var(&f.seed, "seed", 1, "`number` that seeds the order of the runs and the intervals")
	fl.StringVar(&f.home, "home", "", "`folder` to copy to the home folder of each run, such as settings of the agent")
	fl.StringArrayVar(&f.env, "env", nil, "environment `variable` for the agent, NAME or NAME=VALUE, repeatable")
	fl.StringVar(&f.anthropic, "anthropic", "", "base `URL` of a provider of Anthropic Messages, or none (default "+workspace.AnthropicAddress+")")
	fl.StringVar(&f.openai, "openai", "", "base `URL` of a provider of Chat Completions and Responses, or none (default "+workspace.OpenaiAddress+")")
	fl.StringVar(&f.window, "window", "", "context window in `tokens`, such as 128k (default the model's)")
	cmdline.AddConfig(fl, &f.config)
	fl.BoolVar(&f.simulate, "sim", false, "let a simulated provider reply, from the script of each task")
	fl.BoolVar(&f.smoke, "smoke", false, "run the example task set with furl's own agent and --sim")
	fl.StringVar(&f.example, "example", "", "write the example task set to this new `folder` and exit")
	fl.StringArrayVar(&f.sets, "tasks", nil, "built-in task `set`, go or python, repeatable")
	fl.BoolVar(&f.list, "list", false, "list the tasks of the built-in sets and exit")
	fl.BoolVar(&f.report, "report", false, "print the report of --results and exit")
	fl.BoolVar(&f.keep, "keep", false, "keep the copy of the repository of each run")
	fl.BoolVar(&f.each, "each", false, "also print a table for each task")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	cmdline.Complete(cmd, "policy", p.PolicyNames)
	cmdline.Complete(cmd, "tasks", func() []string { return eval.SetNames })
	for _, name := range []string{"results", "home", "example"} {
		_ = cmd.MarkFlagDirname(name)
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cmdline.BadUsage(`%w; put the agent's command and its arguments after "--"; see furl eval --help`, cmdline.FlagError(err))
	})
	return cmd
}

// checkArgs checks the arguments and the flags that need no configuration.
func (f *evalFlags) checkArgs(cmd *cobra.Command, args []string) error {
	tasks, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		tasks, command = args[:dash], args[dash:]
	}
	alone := ""
	for name, set := range map[string]bool{"--smoke": f.smoke, "--report": f.report, "--list": f.list, "--example": f.example != ""} {
		if set && alone != "" {
			return cmdline.BadUsage("--smoke, --report, --list and --example exclude each other")
		}
		if set {
			alone = name
		}
	}
	of := "tasks"
	switch {
	case alone != "" && len(f.sets) > 0:
		return cmdline.BadUsage("%s excludes --tasks", alone)
	case len(f.sets) > 0 && len(tasks) > 0:
		return cmdline.BadUsage("furl eval: unexpected argument %q: --tasks takes the place of the folder; put the agent's command after \"--\"", cmdline.Printable(tasks[0]))
	case len(f.sets) > 0:
		of = "--tasks " + f.sets[0]
	case len(tasks) == 1:
		of = visible.QuoteArg(cmdline.Printable(tasks[0]))
	}
	switch {
	case alone != "" && len(args) > 0:
		return cmdline.BadUsage("furl eval %s: unexpected argument %q: it takes no tasks and no command", alone, cmdline.Printable(args[0]))
	case alone != "":
	case len(tasks) == 0 && len(f.sets) == 0:
		return cmdline.BadUsage("furl eval requires a folder of tasks or --tasks SET; furl eval --list shows the built-in sets, furl eval --example FOLDER writes a folder, furl eval --smoke runs one without a key")
	case len(tasks) > 1:
		return cmdline.BadUsage("furl eval: unexpected argument %q: put the agent's command after \"--\"", cmdline.Printable(tasks[1]))
	case len(command) == 0:
		return cmdline.BadUsage(`furl eval requires the agent's command after "--", such as furl eval %s --budget 10 -- claude -p {instruction}`, of)
	}
	if f.runs < 1 || f.runs > 1000 {
		return cmdline.BadUsage("invalid --runs %d: expected 1 to 1000", f.runs)
	}
	if f.window != "" {
		if _, err := numbers.ParseTokens(f.window); err != nil {
			return cmdline.BadUsage("--window %s: %w", f.window, err)
		}
	}
	for i, name := range f.sets {
		switch {
		case !slices.Contains(eval.SetNames, name):
			return cmdline.BadUsage("unknown task set %q: expected one of %s", cmdline.Printable(name), strings.Join(eval.SetNames, ", "))
		case slices.Contains(f.sets[:i], name):
			return cmdline.BadUsage("--tasks %s is given twice", name)
		}
	}
	for i, name := range f.policies {
		if slices.Contains(f.policies[:i], name) {
			return cmdline.BadUsage("--policy %s is given twice", cmdline.Printable(name))
		}
	}
	if (f.simulate || f.smoke) && (f.anthropic != "" || f.openai != "") {
		return cmdline.BadUsage("--sim and --smoke exclude --anthropic and --openai: the simulated provider replies")
	}
	return nil
}

// resultsDir is the results folder.
func (f *evalFlags) resultsDir() string {
	if f.results == "" {
		return "furl-eval"
	}
	return f.results
}

func (f *evalFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.example != "":
		return f.writeExample(cmd)
	case f.report:
		return f.printSaved(cmd)
	case f.list:
		return f.printSets(cmd.OutOrStdout())
	case f.smoke:
		return f.runSmoke(cmd)
	case len(f.sets) > 0:
		return f.runSets(cmd, args)
	}
	return f.evaluate(cmd, args[0], args[cmd.ArgsLenAtDash():])
}

func (f *evalFlags) writeExample(cmd *cobra.Command) error {
	if err := eval.WriteExample(f.example); err != nil {
		return fmt.Errorf("write the example: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "The example task set is in %s. To run it without a key:\n  furl eval %s --sim -- furl chat -p \"\" --yes --policy none\n", cmdline.Printable(f.example), visible.QuoteArg(f.example))
	return nil
}

func (f *evalFlags) printSaved(cmd *cobra.Command) error {
	r, err := eval.ReadResults(f.resultsDir())
	if err != nil {
		return err
	}
	rounds := 0
	if cmd.Flags().Changed("runs") {
		rounds = f.runs
	}
	for i := range r.List {
		rounds = max(rounds, r.List[i].Number)
	}
	return f.print(cmd.OutOrStdout(), eval.NewReport(r, rounds))
}

// runSmoke runs the example task set. Each run must solve its task.
func (f *evalFlags) runSmoke(cmd *cobra.Command) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "furl-smoke-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	tasks := filepath.Join(temp, "tasks")
	if err := eval.WriteExample(tasks); err != nil {
		return err
	}
	f.simulate = true
	if f.results == "" {
		f.results = filepath.Join(temp, "results")
	}
	if !cmd.Flags().Changed("runs") {
		f.runs = 2
	}
	rep, err := f.execute(cmd, tasks, []string{self, "chat", "-p", "", "--yes", "--policy", "none", "--no-mcp"})
	if err != nil {
		return err
	}
	rep.Command[0] = "furl"
	if err := f.print(cmd.OutOrStdout(), rep); err != nil {
		return err
	}
	for _, arm := range rep.Arms {
		if arm.Solved < arm.Runs {
			return fmt.Errorf("smoke test: %d of %d runs with %s are not solved", arm.Runs-arm.Solved, arm.Runs, arm.Policy)
		}
	}
	return nil
}

// runSets evaluates with the tasks of built-in sets.
func (f *evalFlags) runSets(cmd *cobra.Command, command []string) (err error) {
	temp, err := os.MkdirTemp("", "furl-tasks-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	for _, set := range f.sets {
		if err := eval.WriteSet(temp, set); err != nil {
			return err
		}
	}
	return f.evaluate(cmd, temp, command)
}

// evaluate runs an evaluation and prints its report, also if the budget ends it.
func (f *evalFlags) evaluate(cmd *cobra.Command, tasks string, command []string) error {
	rep, err := f.execute(cmd, tasks, command)
	budget := (*eval.BudgetError)(nil)
	if err != nil && !errors.As(err, &budget) {
		return err
	}
	if failed := f.print(cmd.OutOrStdout(), rep); failed != nil {
		return failed
	}
	if !f.json {
		fmt.Fprintf(cmd.OutOrStdout(), "\nLogs and sessions of each run are in %s.\n", cmdline.Printable(filepath.Join(f.resultsDir(), "runs")))
	}
	if budget != nil {
		_ = cmdline.Flush(cmd.OutOrStdout()) // the last flush returns the error as well
		cmdline.Complain(cmd.ErrOrStderr(), budget)
		return cmdline.ExitCode(exitBudget)
	}
	return nil
}

// execute runs what is missing. With a *eval.BudgetError it returns a report too.
func (f *evalFlags) execute(cmd *cobra.Command, dir string, command []string) (rep *eval.Report, err error) {
	budget, err := f.parseBudget()
	if err != nil {
		return nil, err
	}
	if command, err = findCommand(command); err != nil {
		return nil, err
	}
	tasks, err := eval.LoadTasks(dir)
	if err != nil {
		return nil, err
	}
	if err := f.checkScripts(tasks); err != nil {
		return nil, err
	}
	plan, err := f.plan(tasks, command)
	if err != nil {
		return nil, err
	}
	env, err := f.agentVariables()
	if err != nil {
		return nil, err
	}
	if f.home != "" {
		if fi, err := os.Stat(f.home); err != nil || !fi.IsDir() {
			return nil, cmdline.BadUsage("--home %s: no such folder", cmdline.Printable(f.home))
		}
	}
	results, err := filepath.Abs(f.resultsDir())
	if err != nil {
		return nil, err
	}
	r, err := eval.OpenResults(results, *plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	route, err := f.route(command, env)
	if err != nil {
		return nil, err
	}
	route.Print(cmd.ErrOrStderr())
	progress := newEvalProgress(cmd, f.json)
	err = eval.Execute(cmd.Context(), r, &eval.Options{
		Tasks: tasks, Rounds: f.runs, Budget: budget, Env: env, Home: f.home, Keep: f.keep, Version: workspace.Version(),
		Gateway: f.gateway(route), Progress: progress.report,
	})
	progress.close()
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(cmd.ErrOrStderr(), "furl: %d runs are saved in %s; the same command continues\n", len(r.List), cmdline.Printable(results))
	}
	return eval.NewReport(r, f.runs), err
}

// parseBudget returns the budget in dollars, negative for none.
func (f *evalFlags) parseBudget() (float64, error) {
	switch {
	case f.budget == "none", f.budget == "" && f.simulate:
		return -1, nil
	case f.budget == "":
		return 0, cmdline.BadUsage("--budget is required: the most to spend in US dollars at list prices, such as --budget 10, or --budget none")
	}
	budget, err := strconv.ParseFloat(strings.TrimPrefix(f.budget, "$"), 64)
	if err != nil || !(budget > 0) || math.IsInf(budget, 0) {
		return 0, cmdline.BadUsage("invalid --budget %q: expected US dollars above 0 such as 10.00, or none", cmdline.Printable(f.budget))
	}
	return budget, nil
}

// findCommand returns the command with an absolute path of its program.
func findCommand(command []string) ([]string, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, cmdline.BadUsage("agent command %q: %w", cmdline.Printable(command[0]), errors.Unwrap(err))
	}
	if !strings.ContainsRune(command[0], filepath.Separator) {
		return command, nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return append([]string{path}, command[1:]...), nil
}

// plan returns the plan of the evaluation, after checking policies and configuration.
func (f *evalFlags) plan(tasks []eval.Task, command []string) (*eval.Plan, error) {
	c, file, err := config.Load(f.config, f.program.Policies)
	if err != nil {
		return nil, err
	}
	switch set := c.Settings(); {
	case c.Gateway.DryRun:
		return nil, fmt.Errorf("%s sets gateway.dry_run, so no policy would hide anything: use another file with --config", file)
	case set.Off:
		return nil, fmt.Errorf("%s sets context_management_enabled to false, so no policy would hide anything: use another file with --config", file)
	case set.RollingContext != nil && *set.RollingContext:
		return nil, fmt.Errorf("%s sets rolling_context, which hides results under every policy, none included: use another file with --config", file)
	}
	p := &eval.Plan{
		Version: workspace.Version(), Command: command, Policies: f.policies, Seed: f.seed, Simulated: f.simulate,
		Settings: make(map[string]string), Tasks: make(map[string]string),
	}
	if len(p.Policies) == 0 {
		p.Policies = []string{"none", "auto"}
	}
	for _, name := range p.Policies {
		if _, err := c.Set().Policy(name, policy.Settings{}); err != nil {
			return nil, cmdline.AsUsage(err)
		}
	}
	for i := range tasks {
		p.Tasks[tasks[i].Name] = tasks[i].Digest
	}
	for name, value := range map[string]string{
		"--window": f.window, "--anthropic": f.anthropic, "--openai": f.openai, "--home": f.home, "--env": envNames(f.env),
	} {
		if value != "" {
			p.Settings[name] = value
		}
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		sum := sha256.Sum256(text)
		p.Settings["the configuration"] = hex.EncodeToString(sum[:16])
	}
	return p, nil
}

// envNames returns the names of variables without their values, which may be secret.
func envNames(list []string) string {
	var names []string
	for _, one := range list {
		name, _, _ := strings.Cut(one, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// credentials are the variables that the agent gets if they are set.
var credentials = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"}

// agentVariables returns the environment that the flags add for the agent.
func (f *evalFlags) agentVariables() ([]string, error) {
	var env []string
	for _, name := range credentials {
		if value := os.Getenv(name); value != "" && !f.simulate {
			env = append(env, name+"="+value)
		}
	}
	if f.simulate {
		env = append(env, "ANTHROPIC_API_KEY=furl-sim", "OPENAI_API_KEY=furl-sim")
	}
	for _, one := range f.env {
		name, _, set := strings.Cut(one, "=")
		value, exists := os.LookupEnv(name)
		switch {
		case name == "" || strings.ContainsAny(name, " \t\x00"):
			return nil, cmdline.BadUsage("invalid --env %q: expected NAME or NAME=VALUE", cmdline.Printable(name))
		case set:
			env = append(env, one)
		case !exists:
			return nil, cmdline.BadUsage("--env %s: the variable is not set", cmdline.Printable(name))
		default:
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}
