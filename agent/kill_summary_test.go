package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/tool"
)

// When a process of summarizeIn is killed.
const (
	killedByTest   = -1 - iota // while the provider writes the summary
	killedAtStart              // before the summary is requested
	killedAtRecord             // when the summary is in use
)

// summarizedCalls is the number of calls in the task of summarizeIn.
const summarizedCalls = 24

// summarizeIn runs a task that needs summaries in a folder to its end, from where it
// has stopped. kill is when the process is killed, 0 for never.
func summarizeIn(ctx context.Context, dir, url string, format furl.Format, kill int) (*session.Session, error) {
	store, err := sqlite.Open(filepath.Join(dir, "furl.db"), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }() // all records are stored
	all, err := session.New(store, &session.Options{Policy: "compaction", Window: 20_000})
	if err != nil {
		return nil, err
	}
	s, err := all.Open(ctx, killedSession)
	var input []agent.Input
	if errors.Is(err, storage.ErrNoSession) {
		s, err = all.CreateAs(killedSession, storage.Meta{}), nil
		input = []agent.Input{agent.Text("Work.")}
	}
	if err != nil {
		return nil, err
	}
	id := "claude-sonnet-4-5"
	if format != furl.FormatAnthropic {
		id = "gpt-5.2"
	}
	a, err := agent.New(s, agent.Model{Format: format, ID: id, BaseURL: url, Key: "k"}, &agent.Options{
		Tools: []tool.Tool{{
			Name: "read", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
			Run: func(_ context.Context, input json.RawMessage) (tool.Result, error) {
				return tool.Text("result of " + string(input) + "\n" + strings.Repeat("a line of a file\n", 300)), nil
			},
		}},
		Approve: agent.ApproveAll, Rerun: agent.RerunAll,
	})
	if err != nil {
		return nil, err
	}
	for e, err := range a.Run(ctx, input...) {
		if err != nil {
			return nil, err
		}
		_, started := e.(agent.SummaryStarted)
		c, _ := e.(agent.Context)
		_, compacted := c.Event.(event.Compacted)
		if kill == killedAtStart && started || kill == killedAtRecord && compacted {
			killSelf()
		}
	}
	return s, nil
}

// summarized plays the task of summarizeIn. It has no state: a summary says how many
// calls there were. It calls summary before it writes one.
func summarized(summary func(ctx context.Context)) sim.PlayerFunc {
	return func(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
		n, asked := 0, false
		for i := range req.Messages {
			for j := range req.Messages[i].Blocks {
				b := &req.Messages[i].Blocks[j]
				said := 0
				if _, id, ok := strings.Cut(b.ID, "toolu_"); ok && b.Kind == furl.KindCall {
					_, _ = fmt.Sscan(id, &said)
					said++
				}
				if _, after, ok := strings.Cut(b.Text, "There were calls: "); ok {
					_, _ = fmt.Sscan(after, &said)
				}
				n = max(n, said)
				asked = i == len(req.Messages)-1 && strings.Contains(b.Text, policy.DefaultSummaryRequest)
			}
		}
		if asked {
			summary(ctx)
			return sim.Text(fmt.Sprintf("There were calls: %d .", n)), nil
		}
		if n >= summarizedCalls {
			return sim.Text("Done."), nil
		}
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: "read", ID: fmt.Sprintf("toolu_%d", n), Args: fmt.Appendf(nil, `{"n":%d}`, n)}}}, nil
	}
}

// A process that is killed around a request for a summary leaves a valid session, and
// the next run summarizes and continues to the same end.
func TestKillInSummary(t *testing.T) {
	t.Run("C10 a killed summary changes nothing", func(t *testing.T) {
		for _, m := range models {
			for name, kill := range map[string]int{"asked": killedByTest, "before": killedAtStart, "recorded": killedAtRecord} {
				t.Run(string(m.Format)+"/"+name, func(t *testing.T) {
					t.Parallel()
					testKillInSummary(t, m.Format, kill)
				})
			}
		}
	})
}

func testKillInSummary(t *testing.T, format furl.Format, kill int) {
	var first atomic.Bool
	first.Store(kill == killedByTest)
	reached, killed := make(chan struct{}), make(chan struct{})
	p, url := provide(t, sim.Options{Window: 20_000, Player: summarized(func(ctx context.Context) {
		if first.CompareAndSwap(true, false) {
			close(reached)
			<-killed
		}
	})})
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", childEnv, dir, url, format, kill))
	var out strings.Builder
	child.Stdout, child.Stderr = &out, &out
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	var err error
	if kill == killedByTest {
		select {
		case <-reached:
			_ = child.Process.Kill()
			err = <-ended
		case err = <-ended:
		}
	} else {
		err = <-ended
	}
	close(killed)
	if err == nil || out.Len() > 0 {
		t.Fatalf("the process was not killed: %v, %s", err, out.String())
	}
	requests := len(p.Requests())

	before := reopened(t, dir)
	if problems, err := before.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("after the kill: %v, %v", problems, err)
	}
	if n := len(before.Reductions()); n > 0 != (kill == killedAtRecord) {
		t.Errorf("%d reductions after the kill", n)
	}
	if _, err := summarizeIn(t.Context(), dir, url, format, 0); err != nil {
		t.Fatal(err)
	}
	s := reopened(t, dir)
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("in the end: %v, %v", problems, err)
	}
	if len(s.Reductions()) == 0 {
		t.Error("nothing was summarized")
	}
	text := transcriptOf(s)
	for n := range summarizedCalls {
		if c := strings.Count(text, fmt.Sprintf("result of {\"n\":%d}\n", n)); c != 1 {
			t.Errorf("%d results of call %d", c, n)
		}
	}
	if !strings.Contains(text, "Done.") {
		t.Errorf("the task has not ended:\n%.2000s", text)
	}
	for _, e := range p.Requests()[requests:] {
		if e.Verdict == sim.VerdictRefused {
			t.Errorf("request %d was refused: %s", e.N, e.Error)
		}
	}
}

// reopened returns the session in a folder, as another process reads it.
func reopened(t *testing.T, dir string) *session.Session {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(dir, "furl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.Open(t.Context(), killedSession)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
