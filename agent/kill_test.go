package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/tool"
)

// The test binary is also the process that TestKill kills. The variable has the
// folder, the provider's address, the wire format and the event at which it is
// killed, separated by spaces. A negative event is one of summarizeIn.
const childEnv = "FURL_AGENT_TEST_CHILD"

func TestMain(m *testing.M) {
	if does := os.Getenv(childEnv); does != "" {
		if err := beChild(does); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beChild(does string) error {
	var dir, url, format string
	var at int
	if _, err := fmt.Sscan(does, &dir, &url, &format, &at); err != nil {
		return err
	}
	if at < 0 {
		_, err := summarizeIn(context.Background(), dir, url, furl.Format(format), at)
		return err
	}
	n := 0
	_, err := workIn(context.Background(), dir, url, furl.Format(format), func(agent.Event) {
		if n++; n == at {
			killSelf()
		}
	})
	return err
}

func killSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // the signal may need a moment
}

const killedSession = "killed"

// workIn runs the task in a folder to its end, from where it has stopped.
func workIn(ctx context.Context, dir, url string, format furl.Format, each func(agent.Event)) (*session.Session, error) {
	store, err := sqlite.Open(filepath.Join(dir, "furl.db"), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }() // all records are stored
	all, err := session.New(store, nil)
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
	run := func(name string) func(context.Context, json.RawMessage) (tool.Result, error) {
		return func(_ context.Context, input json.RawMessage) (tool.Result, error) {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = fmt.Fprintf(f, "%s\n", input)
				err = errors.Join(err, f.Close())
			}
			return tool.Text("result of " + string(input)), err
		}
	}
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	id := "claude-sonnet-4-5"
	if format != furl.FormatAnthropic {
		id = "gpt-5.2"
	}
	a, err := agent.New(s, agent.Model{Format: format, ID: id, BaseURL: url, Key: "k"}, &agent.Options{
		Tools: []tool.Tool{{Name: "read", Schema: schema, Run: run("read")}, {Name: "write", Schema: schema, Run: run("write"), Changes: true}},
		// No call may be lost, so those that change something run again too, unless
		// their result is recorded.
		Approve: agent.ApproveAll, Rerun: agent.RerunAll,
	})
	if err != nil {
		return nil, err
	}
	for e, err := range a.Run(ctx, input...) {
		if err != nil {
			return nil, err
		}
		each(e)
	}
	return s, nil
}

// steps plays two steps of three calls and a text. It has no state.
func steps(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	n := 0
	for i := range req.Messages {
		for j := range req.Messages[i].Blocks {
			if req.Messages[i].Blocks[j].Kind == furl.KindCall {
				n++
			}
		}
	}
	if n == 6 {
		return sim.Text("Done."), nil
	}
	r := sim.Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: fmt.Sprintf("After %d.", n)}}}
	for i, name := range []string{"read", "read", "write"} {
		r.Blocks = append(r.Blocks, furl.Block{Kind: furl.KindCall, Name: name, ID: fmt.Sprintf("toolu_%d", n+i), Args: fmt.Appendf(nil, `{"n":%d}`, n+i)})
	}
	return r, nil
}

// transcriptOf returns the messages of a session as text.
func transcriptOf(s *session.Session) string {
	var out strings.Builder
	for _, r := range s.Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			b := &m.Blocks[i]
			fmt.Fprintf(&out, "%s %s %s %s %s %s %t\n", m.Role, b.Kind, b.ID, b.Name, b.Text, b.Args, b.Error)
		}
	}
	return out.String()
}

// A process that is killed at an event continues from there: the transcript is the same
// in the end, and no call that has a result has run again.
func TestKill(t *testing.T) {
	for i, m := range models {
		t.Run(string(m.Format), func(t *testing.T) {
			t.Parallel()
			p, url := provide(t, sim.Options{Player: sim.PlayerFunc(steps)})
			events := 0
			s, err := workIn(t.Context(), t.TempDir(), url, m.Format, func(agent.Event) { events++ })
			if err != nil {
				t.Fatal(err)
			}
			want := transcriptOf(s)
			every := 1
			if i > 0 && os.Getenv("FURL_KILL_ALL") == "" { // FURL_KILL_ALL=1 kills at every event in every format
				every = 5
			}
			for at := 1 + i; at <= events; at += every {
				dir := t.TempDir()
				child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
				child.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{dir, url, string(m.Format), strconv.Itoa(at)}, " "))
				out, err := child.CombinedOutput()
				if err == nil && len(out) == 0 {
					break // a reply came in fewer pieces, and the run ended before this event
				}
				if len(out) > 0 {
					t.Fatalf("killed at event %d: %v, %s", at, err, out)
				}
				before := results(t, dir)
				s, err := workIn(t.Context(), dir, url, m.Format, func(agent.Event) {})
				if err != nil {
					t.Fatalf("killed at event %d: %v", at, err)
				}
				if got := transcriptOf(s); got != want {
					t.Errorf("killed at event %d: got\n%s\nwant\n%s", at, got, want)
				}
				for _, name := range []string{"read", "write"} {
					ran, err := os.ReadFile(filepath.Join(dir, name))
					if err != nil {
						t.Fatal(err)
					}
					for n := range 6 {
						line := fmt.Sprintf("{\"n\":%d}", n)
						if c := strings.Count(string(ran), line); c > 2 || c > 1 && before[line] {
							t.Errorf("killed at event %d: %s %s ran %d times", at, name, line, c)
						}
					}
				}
			}
			for _, e := range p.Requests() {
				if e.Verdict == sim.VerdictRefused {
					t.Errorf("request %d was refused: %s", e.N, e.Error)
				}
			}
		})
	}
}

// results returns the inputs of the calls that had a result when the process was killed.
func results(t *testing.T, dir string) map[string]bool {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(dir, "furl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]bool{}
	s, err := all.Open(t.Context(), killedSession)
	if err != nil {
		return list
	}
	for line := range strings.Lines(transcriptOf(s)) {
		if _, input, ok := strings.Cut(line, "result of "); ok {
			input, _, _ = strings.Cut(input, " ")
			list[input] = true
		}
	}
	return list
}
