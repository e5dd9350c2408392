package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/replay"
)

// The advice names a policy that loses little, and else says what the cheapest
// would lose.
func TestAdvice(t *testing.T) {
	result := func(name string, ratio float64, kept, overflows int) replay.Result {
		return replay.Result{Policy: name, Requests: 3, CostRatio: &ratio, References: 100, ReferencesKept: kept, Overflows: overflows}
	}
	none, over := result("none", 1, 100, 0), result("over", 0.1, 100, 1)
	for _, tt := range []struct {
		name   string
		totals []replay.Result
		want   []string
	}{
		{"a good one", []replay.Result{none, over, result("lossy", 0.5, 80, 0), result("good", 0.7, 96, 0)},
			[]string{"Cheapest that keeps 95% of the names: good, 70% of the input cost.", `session.Options{Policy: "good"}`}},
		{"only lossy ones", []replay.Result{none, over, result("lossy", 0.5, 80, 0), result("worse", 0.6, 70, 0)},
			[]string{"no policy is cheaper", "The cheapest, lossy, takes 50% of the input cost and keeps 80.0% of them."}},
		{"none cheaper", []replay.Result{none, over, result("dear", 1.2, 100, 0)}, []string{"no policy is cheaper"}},
	} {
		var b strings.Builder
		printAdvice(&b, &replay.Report{Totals: tt.totals, Recordings: []replay.RecordingReport{{File: "made up"}}}, nil)
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: advice lacks %q:\n%s", tt.name, want, b.String())
			}
		}
		if strings.Contains(b.String(), "The cheapest") != (len(tt.want) == 2 && strings.HasPrefix(tt.want[1], "The cheapest")) {
			t.Errorf("%s: advice about the cheapest out of place:\n%s", tt.name, b.String())
		}
	}
}

// A last column of text begins where its head does.
func TestTableEndsInText(t *testing.T) {
	var b strings.Builder
	tab := table{head: []string{"head", "last words"}, rows: [][]string{{"4", "go on"}, {"123456", "a longer text than that"}}, text: true}
	tab.print(&b, false)
	const want = "head    last words\n4       go on\n123456  a longer text than that\n"
	if b.String() != want {
		t.Errorf("printed\n%s, want\n%s", b.String(), want)
	}
}

// A table is made to fit by its long cells, down to what is still of use.
func TestTableShrinks(t *testing.T) {
	for _, tt := range []struct{ cols, want int }{{100, 44}, {30, 30}, {5, 17}} {
		tab := table{head: []string{"id", "title"}, left: 2, rows: [][]string{{"abc", strings.Repeat("x", 39)}, {"b", "short"}}}
		tab.shrink("title", tt.cols, 12)
		if got := tab.width(); got != tt.want {
			t.Errorf("a table for %d columns is %d wide, want %d", tt.cols, got, tt.want)
		}
	}
}

// Characters that take two columns of a terminal count as two.
func TestTableWideCharacters(t *testing.T) {
	var b strings.Builder
	tab := table{rows: [][]string{{"会話", "1"}, {"abcd", "2"}}}
	tab.print(&b, false)
	if want := "会話  1\nabcd  2\n"; b.String() != want {
		t.Errorf("printed\n%s, want\n%s", b.String(), want)
	}
}

// Where there is room, and where nobody looks, ids stand whole.
func TestSessionsKeepIDs(t *testing.T) {
	id := strings.Repeat("long-id.", 10)
	var b strings.Builder
	printSessions(&b, []furl.SessionInfo{{SessionKey: furl.SessionKey{Session: furl.SessionID(id)}}}, time.Time{})
	if !strings.Contains(b.String(), id+" ") {
		t.Errorf("printed\n%s", b.String())
	}
}

// A call that furl answered itself is told from those of the agent, which never
// had it.
func TestShowMarksOwnCalls(t *testing.T) {
	for _, tt := range []struct {
		block furl.Block
		want  string
	}{
		{furl.Block{Kind: furl.KindCall, Name: "memory_search", Args: []byte(`{"query":"x"}`), Own: true}, "call memory_search, furl's own\n"},
		{furl.Block{Kind: furl.KindResult, Text: "nothing", Error: true, Own: true}, "result, failed, furl's own\n"},
		{furl.Block{Kind: furl.KindCall, Name: "memory_search", Args: []byte(`{}`)}, "call memory_search\n"},
	} {
		var out strings.Builder
		(&printer{w: &out}).block(&tt.block, tt.block.Text, "")
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("it is shown as %q, want %q", out.String(), tt.want)
		}
		if got := blockJSON(&tt.block).Own; got != tt.block.Own {
			t.Errorf("in JSON it is furl's own: %v, want %v", got, tt.block.Own)
		}
	}
}
