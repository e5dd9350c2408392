package replaycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/eval"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/sim"
)

// checkScripts reads the scripts of the tasks, so that an invalid one is found before
// the first run.
func (f *evalFlags) checkScripts(tasks []eval.Task) error {
	var errs []error
	for i := range tasks {
		if _, err := scriptPlayer(tasks[i].Script); err != nil {
			errs = append(errs, fmt.Errorf("task %s: %w", tasks[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// scriptPlayer returns the replies of a script file, or without one the built-in agent's.
func scriptPlayer(script string) (sim.Player, error) {
	if script == "" {
		return sim.NewAgent(nil), nil
	}
	data, err := os.ReadFile(script)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	return sim.ParseScript(filepath.Base(script), data)
}

// gateway returns a function that runs the agent of a run behind a gateway with a store
// of its own.
func (f *evalFlags) gateway(route *launch.Route) func(context.Context, eval.GatewayRun, eval.During) (eval.Measures, error) {
	return func(ctx context.Context, g eval.GatewayRun, during eval.During) (m eval.Measures, err error) {
		log, err := os.OpenFile(filepath.Join(g.Dir, "gateway.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, log.Close()) }()
		s := serving.Gateway{
			Workspace: workspace.Workspace{Policies: f.program.Policies, Place: filepath.Join(g.Dir, "furl.db"), Config: f.config},
			Command:   "furl eval",
			Listen:    launch.FreePort, Anthropic: cmp.Or(f.anthropic, route.Anthropic), Openai: f.openai, Policy: g.Policy, Window: f.window,
			NoPage: true, Running: true, Usual: "warn", LogTo: log,
		}
		if f.simulate {
			url, stop, err := f.simulator(g.Script)
			if err != nil {
				return m, err
			}
			defer stop()
			s.Anthropic, s.Openai = url, url
		}
		var failed error
		statuses := &statusCount{counts: make(map[int]int)}
		s.Handler = statuses.wrap
		s.Finished = func(all *serving.Running) { m, failed = measured(all) }
		err = s.Serve(ctx, serving.RunShutdown, func(ctx context.Context, _ *serving.Running, url string) error {
			return during(ctx, route.Args(url), route.Env(url))
		})
		m.Unanswered = statuses.counts
		return m, cmp.Or(err, failed)
	}
}

// route returns how to connect the agent of each run. It has a home folder of its own,
// with a copy of --home, and only the variables of env.
func (f *evalFlags) route(command, env []string) (*launch.Route, error) {
	c, _, err := config.Load(f.config, f.program.Policies)
	if err != nil {
		return nil, err
	}
	place := launch.Place{Home: f.home, Getenv: func(name string) (value string) {
		for _, one := range env { // the last one wins
			if rest, ok := strings.CutPrefix(one, name+"="); ok {
				value = rest
			}
		}
		return value
	}}
	s := serving.Gateway{Anthropic: f.anthropic, Openai: f.openai, Listen: launch.FreePort}
	to := s.Forwarding(c)
	if f.simulate {
		to.Anthropic, to.Openai, to.Given, to.GivenOpenAI = "", "", true, true
	}
	to.Keep = func(flag, address string) string {
		return "add --" + flag + " " + visible.QuoteArg(address) + " to furl eval"
	}
	return launch.Connect(place, command, to), nil
}

// simulator starts the simulated provider of a run.
func (f *evalFlags) simulator(script string) (url string, stop func(), err error) {
	o := &sim.Options{NoAuth: true, Seed: f.seed}
	if o.Player, err = scriptPlayer(script); err != nil {
		return "", nil, err
	}
	if f.window != "" {
		if o.Window, err = numbers.ParseTokens(f.window); err != nil {
			return "", nil, err
		}
	}
	return launch.ListenLocal(sim.New(o))
}

// measured returns the measures of what a gateway has recorded.
func measured(s *serving.Running) (m eval.Measures, err error) {
	for key, sum := range s.Sessions.Stats().Savings {
		one, err := s.Sessions.For(key.Tenant).Open(context.Background(), key.Session)
		if err != nil {
			return m, fmt.Errorf("measure session %s: %w", key.Session, err)
		}
		m.Requests += sum.Requests
		m.Tokens += sum.Tokens
		m.TokensWithout += sum.TokensWithout
		m.Cost += sum.Cost + sum.SummaryCost
		m.Unpriced += sum.Unpriced
		if err := m.AddSession(one.Records(0), one.Head(), func(name string) furl.Model { return one.Model(name) }); err != nil {
			return m, fmt.Errorf("measure session %s: %w", key.Session, err)
		}
	}
	return m, nil
}

// statusCount counts the responses with an error, by status. It is safe for concurrent
// use.
type statusCount struct {
	mu     sync.Mutex
	counts map[int]int
}

func (c *statusCount) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&statusWriter{w, c, r.Method == http.MethodPost}, r)
	})
}

// statusWriter reports its status. http.ResponseController finds the rest.
type statusWriter struct {
	http.ResponseWriter
	c      *statusCount
	counts bool
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(status int) {
	if w.counts && status >= 400 {
		w.c.mu.Lock()
		w.c.counts[status]++
		w.c.mu.Unlock()
	}
	w.ResponseWriter.WriteHeader(status)
}
