package eval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Placeholder is replaced by the instruction in the arguments of the agent's command.
// If no argument has it, the instruction is the command's standard input.
const Placeholder = "{instruction}"

// Options are the options of Execute.
type Options struct {
	Tasks []Task
	// Rounds is how often each task runs with each policy.
	Rounds int
	// Budget is the most to spend, in US dollars at list prices, over all runs of the
	// results folder. If negative, there is no limit.
	Budget float64
	// Env is the environment of the agent, in addition to PATH, HOME and the like.
	// Setup and check do not get it.
	Env []string
	// Home is a folder whose files are copied to the home folder of each run. It may
	// be empty.
	Home string
	// Version is the version of furl, for the results.
	Version string
	// Keep keeps the copy of the repository in the folder of the run.
	Keep bool
	// Gateway starts a gateway with the policy of the run, calls during, and returns
	// what was recorded. The store and the log of the gateway belong into dir.
	Gateway func(ctx context.Context, g GatewayRun, during During) (Measures, error)
	// Progress is called before and after each run. It may be nil.
	Progress func(Progress)
}

// GatewayRun describes a run for its gateway.
type GatewayRun struct {
	Policy string
	Dir    string
	Script string // of the task
}

// During runs the agent with the arguments and the additional environment that the
// gateway asks for.
type During func(ctx context.Context, args, env []string) error

// Progress describes how far an evaluation is.
type Progress struct {
	Run    Run
	Done   int     // runs finished, with those of earlier processes
	All    int     // runs of the evaluation
	Cost   float64 // of the finished runs
	Result *Result // of Run, nil before it
}

// BudgetError is returned by Execute if the next run might exceed the budget.
type BudgetError struct {
	Budget, Spent float64
	Next          float64 // what the most expensive run has cost
	Left          int     // runs that are missing
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("budget reached: $%.2f of $%.2f is spent, and a run has cost up to $%.2f; to run the other %d, use a larger --budget", e.Spent, e.Budget, e.Next, e.Left)
}

// Execute executes the runs that the results do not have yet, in the order of the plan.
// It stops before a run that might exceed the budget, and at the first run that cannot
// be measured: its setup fails, the agent does not start, or no request is recorded.
func Execute(ctx context.Context, r *Results, o *Options) error {
	x := &execution{r: r, o: o, tasks: make(map[string]*Task)}
	for i := range o.Tasks {
		x.tasks[o.Tasks[i].Name] = &o.Tasks[i]
	}
	runs := r.Plan.Runs(o.Rounds)
	left := slices.DeleteFunc(slices.Clone(runs), r.Has)
	if err := x.makeScratch(); err != nil {
		return err
	}
	defer x.removeScratch()
	for i, run := range left {
		if err := x.mayStart(len(left) - i); err != nil {
			return err
		}
		p := Progress{Run: run, Done: len(runs) - len(left) + i, All: len(runs)}
		p.Cost, _ = r.Cost()
		x.say(p)
		result, err := x.run(ctx, run)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("run %d of %s with %s: %w", run.Number, run.Task, run.Policy, err)
		}
		if err := r.append(result); err != nil {
			return err
		}
		p.Done++
		p.Cost, _ = r.Cost()
		p.Result = result
		x.say(p)
	}
	return nil
}

// execution is a call of Execute.
type execution struct {
	r       *Results
	o       *Options
	tasks   map[string]*Task
	scratch string
}

func (x *execution) say(p Progress) {
	if x.o.Progress != nil {
		x.o.Progress(p)
	}
}

// mayStart checks the budget before a run. left is the number of missing runs.
func (x *execution) mayStart(left int) error {
	if x.o.Budget < 0 {
		return nil
	}
	for i := range x.r.List {
		if one := &x.r.List[i]; one.Unpriced > 0 {
			return fmt.Errorf("run %d of %s with %s used a model without a known price, so the budget cannot be kept: add the model to the catalogue of the configuration, or use --budget none", one.Number, one.Task, one.Policy)
		}
	}
	spent, most := x.r.Cost()
	if len(x.r.List) > 0 && spent+most > x.o.Budget {
		return &BudgetError{Budget: x.o.Budget, Spent: spent, Next: most, Left: left}
	}
	return nil
}

// scratchPrefix begins the name of the folder for copies. It is in the folder for
// temporary files, so that an agent finds no settings and no repository above it.
const scratchPrefix = "furl-eval-"

// makeScratch makes the folder for copies, and removes that of a process that was
// killed.
func (x *execution) makeScratch() (err error) {
	name := filepath.Join(x.r.Dir, scratchFile)
	if old, err := os.ReadFile(name); err == nil {
		dir := string(old)
		if filepath.Dir(dir) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(dir), scratchPrefix) {
			if err := removeAll(dir); err != nil {
				return fmt.Errorf("remove the copies of an earlier run: %w", err)
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if x.scratch, err = os.MkdirTemp("", scratchPrefix); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(x.scratch), 0o600)
}

func (x *execution) removeScratch() {
	if removeAll(x.scratch) == nil {
		_ = os.Remove(filepath.Join(x.r.Dir, scratchFile)) // else the next process tries again
	}
}

// sandbox has the folders of a run.
type sandbox struct{ logs, home, temp, copy string }

func (x *execution) makeSandbox(run Run, t *Task) (*sandbox, error) {
	s := &sandbox{logs: x.r.RunDir(run)}
	base := filepath.Join(x.scratch, fmt.Sprintf("%d", len(x.r.List)))
	s.home, s.temp, s.copy = filepath.Join(base, "home"), filepath.Join(base, "tmp"), filepath.Join(base, t.Name)
	if err := removeAll(s.logs); err != nil { // of a run that was not finished
		return nil, err
	}
	for _, dir := range []string{s.logs, s.home, s.temp, s.copy} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if x.o.Home != "" {
		if err := copyInside(s.home, x.o.Home); err != nil {
			return nil, fmt.Errorf("copy the home folder: %w", err)
		}
	}
	if t.Repository != "" {
		if err := copyInto(s.copy, t.Repository); err != nil {
			return nil, fmt.Errorf("copy the repository: %w", err)
		}
	}
	return s, nil
}

// run executes one run.
func (x *execution) run(ctx context.Context, run Run) (res *Result, err error) {
	t := x.tasks[run.Task]
	s, err := x.makeSandbox(run, t)
	if err != nil {
		return nil, err
	}
	defer func() { // the next run has other folders; the end removes what is left
		_ = removeAll(filepath.Dir(s.copy))
	}()
	if t.Setup != "" {
		end, err := s.shell(ctx, t.Setup, "setup.log", t.CheckTimeLimit)
		if err != nil {
			return nil, fmt.Errorf("setup: %w", err)
		}
		if end.timedOut || end.exit != 0 {
			return nil, fmt.Errorf("setup: %s%s", end.words(t.CheckTimeLimit), s.lastLine("setup.log"))
		}
	}
	res = &Result{Run: run, Started: time.Now().UTC().Truncate(time.Second), CheckExit: -1, Version: x.o.Version}
	var agent ended
	res.Measures, err = x.o.Gateway(ctx, GatewayRun{run.Policy, s.logs, t.Script}, func(ctx context.Context, args, env []string) (err error) {
		agent, err = s.agent(ctx, t, args, slices.Concat(x.o.Env, env))
		return err
	})
	if err != nil {
		return nil, err
	}
	res.AgentExit, res.Seconds = agent.exit, agent.took.Seconds()
	if res.Requests == 0 {
		return nil, x.noRequest(res, agent, s, t)
	}
	if err := s.check(ctx, t, agent, res); err != nil {
		return nil, err
	}
	if x.o.Keep {
		if err := s.keep(); err != nil {
			return nil, fmt.Errorf("keep the copy: %w", err)
		}
	}
	return res, nil
}

// noRequest is the error of a run without a recorded request: nothing was measured.
func (x *execution) noRequest(res *Result, agent ended, s *sandbox, t *Task) error {
	words := agent.words(t.TimeLimit)
	if len(res.Unanswered) > 0 {
		var list []string
		for _, status := range sortedStatuses(res.Unanswered) {
			list = append(list, fmt.Sprintf("%d with status %d", res.Unanswered[status], status))
		}
		return fmt.Errorf("no request was answered (%s); the agent ended with %s%s", strings.Join(list, ", "), words, s.lastLine("agent.log"))
	}
	return fmt.Errorf("no request was recorded: the agent must use ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL, and has ended with %s%s", words, s.lastLine("agent.log"))
}

func sortedStatuses(m map[int]int) []int {
	var list []int
	for status := range m {
		list = append(list, status)
	}
	slices.Sort(list)
	return list
}

// words describes the end of a process.
func (e ended) words(limit time.Duration) string {
	if e.timedOut {
		return fmt.Sprintf("time limit of %s", limit)
	}
	return fmt.Sprintf("exit code %d", e.exit)
}

// lastLine returns the last line of a log for an error, and where the log is.
func (s *sandbox) lastLine(name string) string {
	log := filepath.Join(s.logs, name)
	if line := LastLine(tailOf(log, 4096)); line != "" {
		return fmt.Sprintf(": %s (%s)", line, log)
	}
	return fmt.Sprintf(" (%s is empty)", log)
}

// LastLine returns the last line of a text that is not empty, at most 200 bytes of it.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "…"
	}
	return line
}

// agent runs the agent.
func (s *sandbox) agent(ctx context.Context, t *Task, args, env []string) (ended, error) {
	p := process{dir: s.copy, env: s.env(env...), log: filepath.Join(s.logs, "agent.log"), limit: t.TimeLimit, input: strings.NewReader(t.Instruction + "\n")}
	for i, arg := range args {
		if i > 0 && strings.Contains(arg, Placeholder) {
			arg, p.input = strings.ReplaceAll(arg, Placeholder, t.Instruction), nil
		}
		p.args = append(p.args, arg)
	}
	end, err := p.run(ctx)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("start the agent: %w", err)
	}
	return end, err
}

// check runs the check and sets the outcome.
func (s *sandbox) check(ctx context.Context, t *Task, agent ended, res *Result) error {
	if agent.timedOut {
		res.Outcome = TimeLimit
		return nil
	}
	if t.CheckFiles != "" {
		if err := copyInto(s.copy, t.CheckFiles); err != nil {
			return fmt.Errorf("copy the check files: %w", err)
		}
	}
	end, err := s.shell(ctx, t.Check, "check.log", t.CheckTimeLimit)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if !end.timedOut {
		res.CheckExit = end.exit
	}
	if res.Outcome = Solved; res.CheckExit != 0 {
		res.Outcome = Failed
		res.CheckOutput = tailOf(filepath.Join(s.logs, "check.log"), 2000)
	}
	return nil
}

// shell runs a command line of the task in the copy.
func (s *sandbox) shell(ctx context.Context, line, log string, limit time.Duration) (ended, error) {
	p := process{args: []string{"sh", "-c", line}, dir: s.copy, env: s.env(), log: filepath.Join(s.logs, log), limit: limit}
	return p.run(ctx)
}

// keep copies the copy to the folder of the run.
func (s *sandbox) keep() error {
	dst := filepath.Join(s.logs, "copy")
	if err := os.Mkdir(dst, 0o700); err != nil {
		return err
	}
	return copyInside(dst, s.copy)
}

// kept are the variables of furl's own environment that all commands get.
var kept = []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL",
	"SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "NUMBER_OF_PROCESSORS"}

// env returns the environment of a command.
func (s *sandbox) env(more ...string) []string {
	var env []string
	for _, name := range kept {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, "HOME="+s.home, "USERPROFILE="+s.home, "TMPDIR="+s.temp, "TEMP="+s.temp, "TMP="+s.temp, "PWD="+s.copy, "TERM=dumb", "NO_COLOR=1")
	return append(env, more...)
}
