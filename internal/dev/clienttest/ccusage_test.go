package clienttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/tally"
	"github.com/furlhq/furl/transcript"
)

// spent is what the sessions of a folder have used.
type spent struct {
	Input      int     `json:"inputTokens"`
	Output     int     `json:"outputTokens"`
	CacheWrite int     `json:"cacheCreationTokens"`
	CacheRead  int     `json:"cacheReadTokens"`
	Cost       float64 `json:"totalCost"`
}

func (s *spent) add(u furl.Usage, cost float64) {
	s.Input += u.Input
	s.Output += u.Output
	s.CacheWrite += u.CacheWrite + u.CacheWrite1h
	s.CacheRead += u.CacheRead
	s.Cost += cost
}

// The usage that furl reads is that of ccusage, to the cent, for sessions of the real Claude
// Code and Codex with a sub-agent, a fork, a revert, a compaction and a copy of a file, and so is that of each day in three
// time zones.
func TestUsageEqualsCcusage(t *testing.T) {
	binary, err := os.ReadFile(filepath.Join(packages(t), "@ccusage", "ccusage-linux-x64", "bin", "ccusage"))
	if err != nil {
		t.Skip("ccusage is not installed; its package is for Linux on x64: make clients")
	}
	ccusage := filepath.Join(t.TempDir(), "ccusage") // the package's cannot be executed: ccusage's own script sees to that
	if err := os.WriteFile(ccusage, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	// ccusage daily counts each record of a reply without a request id, which ccusage session does not, so the
	// second home has these ids.
	home, identified := t.TempDir(), t.TempDir()
	put := func(fixture, path string) {
		data, err := os.ReadFile(filepath.Join("../../../transcript/testdata", fixture))
		if err != nil {
			t.Fatal(err)
		}
		for home, data := range map[string][]byte{home: data, identified: withRequestIDs(t, data)} {
			path := filepath.Join(home, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("claude-main.jsonl", ".claude/projects/p/main.jsonl")
	put("claude-main.jsonl", ".claude/projects/p/copy.jsonl")
	put("claude-requests.jsonl", ".claude/projects/p/requests.jsonl")
	for _, terms := range []string{"std", "fast", "advisor", "priority"} { // it has no price for the others
		put("claude-billing-"+terms+".jsonl", ".claude/projects/p/"+terms+".jsonl")
	}
	rollouts, err := filepath.Glob("../../../transcript/testdata/rollout-*.jsonl")
	if err != nil || len(rollouts) < 5 {
		t.Fatal(rollouts, err)
	}
	for _, name := range rollouts {
		name = filepath.Base(name)
		day := strings.ReplaceAll(name[len("rollout-"):len("rollout-2026-11-27")], "-", "/")
		put(name, filepath.Join(".codex/sessions", day, name))
	}

	run := func(home string, args ...string) []byte {
		cmd := exec.Command(ccusage, append(args, "--json", "--offline")...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return out
	}
	out := run(home, "session")
	var theirs struct {
		Session []struct {
			Agent string
			spent
		}
	}
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for agent, folder := range map[string]string{"claude": ".claude/projects", "codex": ".codex/sessions"} {
		var want spent
		for _, s := range theirs.Session {
			if s.Agent == agent {
				want.add(furl.Usage{Input: s.Input, Output: s.Output, CacheWrite: s.CacheWrite, CacheRead: s.CacheRead}, s.Cost)
			}
		}
		ours, free := usageIn(t, filepath.Join(home, folder))
		t.Logf("%s: %+v, $%.6f for models without a price in ccusage", agent, ours, free)
		if math.Abs(ours.Cost-want.Cost) >= 0.005 || want.Cost == 0 {
			t.Errorf("%s: $%f, ccusage has $%f", agent, ours.Cost, want.Cost)
		}
		if ours.Cost = want.Cost; ours != want {
			t.Errorf("%s: %+v, ccusage has %+v", agent, ours, want)
		}
	}
	for _, zone := range []string{"UTC", "Asia/Tokyo", "America/Los_Angeles"} {
		compareDays(t, run(identified, "daily", "--timezone", zone), zone, filepath.Join(identified, ".claude/projects"), filepath.Join(identified, ".codex/sessions"))
	}
}

// withRequestIDs returns a file with a request id in each reply of Claude Code: that of the message.
func withRequestIDs(t *testing.T, data []byte) []byte {
	t.Helper()
	var out []byte
	for line := range bytes.Lines(data) {
		var record map[string]json.RawMessage
		var message struct{ ID string }
		if json.Unmarshal(line, &record) == nil && record["requestId"] == nil && json.Unmarshal(record["message"], &message) == nil && message.ID != "" {
			record["requestId"] = fmt.Appendf(nil, "%q", message.ID)
			var err error
			if line, err = json.Marshal(record); err != nil {
				t.Fatal(err)
			}
			line = append(line, '\n')
		}
		out = append(out, line...)
	}
	return out
}

// compareDays compares the sums of days in a time zone with those of ccusage daily.
func compareDays(t *testing.T, out []byte, zone string, folders ...string) {
	t.Helper()
	var theirs struct {
		Daily []struct {
			Period string
			spent
		}
	}
	if err := json.Unmarshal(out, &theirs); err != nil || len(theirs.Daily) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	source, err := recorded.Sources(nil, folders)
	if err != nil {
		t.Fatal(err)
	}
	days := tally.NewCollector(tally.Query{By: []tally.By{tally.Day}, Location: location})
	for s := range source.Bills("", catalogModels) {
		for i := range s.Entries {
			if e := &s.Entries[i]; e.Model == unknownToCcusage {
				e.Cost = 0
			}
		}
		days.Add(&s)
	}
	ours := make(map[string]spent)
	for _, g := range days.Report().Groups {
		if g.Requests > 0 {
			ours[g.Day] = spent{g.Tokens.Input, g.Tokens.Output, g.Tokens.CacheWrite, g.Tokens.CacheRead, g.Cost}
		}
	}
	for _, want := range theirs.Daily {
		got := ours[want.Period]
		delete(ours, want.Period)
		if math.Abs(got.Cost-want.Cost) >= 0.005 {
			t.Errorf("%s in %s: $%f, ccusage has $%f", want.Period, zone, got.Cost, want.Cost)
		}
		if got.Cost = want.Cost; got != want.spent {
			t.Errorf("%s in %s: %+v, ccusage has %+v", want.Period, zone, got, want.spent)
		}
	}
	for day, got := range ours {
		t.Errorf("%s in %s: %+v, ccusage has nothing", day, zone, got)
	}
}

// unknownToCcusage is the model of the fixtures that it has no price for.
const unknownToCcusage = "claude-opus-5-5"

func catalogModels(*transcript.Session) billed.Models {
	return func(name string) furl.Model {
		m, _ := catalog.Default().Lookup(name)
		return m
	}
}

// usageIn sums the recorded usage of a folder, each request once. free is the price of the
// model that ccusage does not know.
func usageIn(t *testing.T, folder string) (sum spent, free float64) {
	t.Helper()
	source, err := recorded.Sources(nil, []string{folder})
	if err != nil {
		t.Fatal(err)
	}
	for rec := range source.Recordings {
		for e := range billed.OfRecording(rec, catalogModels) {
			if e.Elsewhere {
				continue
			}
			if e.Model == unknownToCcusage {
				free, e.Cost = free+e.Cost, 0
			}
			sum.add(e.Usage, e.Cost)
		}
	}
	if len(source.Failed) > 0 {
		t.Fatal(source.Failed)
	}
	return sum, free
}
