package transcript

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// A session of pi 1.6.0: its first message has the instructions by sections, and the tools. What the
// compaction cost is recorded.
func TestPiSystemAndCompaction(t *testing.T) {
	s := only(t, fixture(t, "pi-v3-system.jsonl"))
	if len(s.Preamble) != 5 || !strings.HasPrefix(s.Preamble[0].Text, "You are a coding assistant running inside pi") || !strings.HasSuffix(s.Preamble[0].Text, "</cwd>") || s.Preamble[1].Name != "tool" {
		t.Errorf("the preamble is %+v", s.Preamble)
	}
	var sum, compaction furl.Usage
	ex, _ := exchanges(s)
	for _, x := range ex {
		sum = sum.Add(x.Usage)
	}
	for _, r := range s.Log.Records(0) {
		if c, ok := r.Body.(*furl.Reduction); ok && c.Summary != nil {
			compaction = c.Summary.Usage
		}
	}
	// The sums of usage of all replies, and that of the compaction.
	if want := (furl.Usage{CacheRead: 11524, CacheWrite: 15334, Output: 190}); sum != want {
		t.Errorf("usage %+v, want %+v", sum, want)
	}
	if want := (furl.Usage{Input: 2135, Output: 36}); compaction != want {
		t.Errorf("the compaction used %+v, want %+v", compaction, want)
	}
	checkRequests(t, s, true)
}

// An edit replaces an entry in what is sent, and a request that keeps the cache counts.
func TestPiContextEdit(t *testing.T) {
	s := only(t, fixture(t, "pi-v3-edit.jsonl"))
	var sent strings.Builder
	v := s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			sent.WriteString(v.Messages[i].Blocks[j].Words() + "\n")
		}
	}
	if strings.Contains(sent.String(), "SECRET-LISTING") || !strings.Contains(sent.String(), "[listing removed by an extension]") {
		t.Errorf("the model sees %s", sent.String())
	}
	var sum furl.Usage
	ex, _ := exchanges(s)
	for _, x := range ex {
		sum = sum.Add(x.Usage)
	}
	if want := (furl.Usage{Input: 30, CacheRead: 1500 + 50000 + 1560, CacheWrite: 1500 + 60 + 30, Output: 20 + 8 + 4}); sum != want || len(ex) != 4 {
		t.Errorf("%d requests, usage %+v, want %+v", len(ex), sum, want)
	}
	checkRequests(t, s, true)
}

// The total says whether the tokens written for an hour are among those written.
func TestPiUsage(t *testing.T) {
	for _, tt := range []struct {
		u    piUsage
		want furl.Usage
	}{
		{piUsage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 10, CacheWrite1h: 4, Total: 16}, furl.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 6, CacheWrite1h: 4}},
		{piUsage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 10, CacheWrite1h: 4, Total: 20}, furl.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 10, CacheWrite1h: 4}},
		{piUsage{Input: 1, Output: 2, CacheWrite: 5}, furl.Usage{Input: 1, Output: 2, CacheWrite: 5}},
	} {
		if got := tt.u.usage(); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.u, got, tt.want)
		}
	}
}
