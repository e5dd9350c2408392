package policy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// TestRecordings replaces old results and inputs of recorded sessions by
// placeholders, checks what is shown, and tells how large it is.
func TestRecordings(t *testing.T) {
	files := recordings.Files(t, "entire-cli/*.jsonl.gz", "agentv/*.jsonl.gz", "nimbus/*.json.gz", "pi-mono/*.gz")
	if RaceDetector {
		files = files[:8]
	}
	counter := token.O200k()
	var all hiddenTally
	for _, file := range files {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var one hiddenTally
		for _, session := range rec.Sessions {
			one.session(t, session, counter)
		}
		t.Logf("%s: %s", filepath.Base(file), one)
		all.add(one)
	}
	t.Logf("all: %s", all)
	if all.results == 0 || all.calls == 0 {
		t.Error("nothing was hidden")
	}
}

// hiddenTally sums up placeholders.
type hiddenTally struct {
	results, resultTokens, standIns, names, nameTokens, without int
	calls, callTokens, shortened                                int
}

func (a *hiddenTally) add(b hiddenTally) {
	a.results += b.results
	a.resultTokens += b.resultTokens
	a.standIns += b.standIns
	a.names += b.names
	a.nameTokens += b.nameTokens
	a.without += b.without
	a.calls += b.calls
	a.callTokens += b.callTokens
	a.shortened += b.shortened
}

func (a hiddenTally) String() string {
	r, c := max(1, a.results), max(1, a.calls)
	return fmt.Sprintf("%d results of %d tokens on average show %d, %.1f names in %d tokens (%d%% none); %d inputs of %d tokens show %d",
		a.results, a.resultTokens/r, a.standIns/r, float64(a.names)/float64(r), a.nameTokens/r, 100*a.without/r,
		a.calls, a.callTokens/c, a.shortened/c)
}

// session hides everything but the newest ten steps, all at once.
func (a *hiddenTally) session(t *testing.T, session *transcript.Session, c furl.Counter) {
	const budget = 200
	s := session.Log.State()
	for _, m := range messagesOf(s) {
		m.Measure(c)
	}
	b := furl.Budget{Counter: c, Size: s.View(furl.Model{}).Tokens}
	p := &Pipeline{Label: "p", Stages: []Stage{
		&Mask{KeepSteps: 10, MinTokens: 100, Text: Placeholder(budget)},
		&Shorten{KeepSteps: 10},
	}}
	plan, err := p.Plan(t.Context(), s, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, red := range plan.Reductions {
		for _, item := range red.Items {
			i, _ := s.Find(item.Spans[0].First.Msg)
			_, m := s.Message(i)
			blk := &m.Blocks[item.Spans[0].First.Block]
			in := item.Show.(furl.In)
			if in.Tokens >= blk.Tokens {
				t.Errorf("a stand-in of %d tokens for %d", in.Tokens, blk.Tokens)
			}
			if red.Stage == "shorten" {
				a.calls++
				a.callTokens += blk.Tokens
				a.shortened += in.Tokens
				if err := checkShortened(string(blk.Args), in.Text); err != nil {
					t.Error(err)
				}
				continue
			}
			a.result(t, blk, in, c, budget)
		}
	}
}

func (a *hiddenTally) result(t *testing.T, blk *furl.Block, in furl.In, c furl.Counter, budget int) {
	a.results++
	a.resultTokens += blk.Tokens
	a.standIns += in.Tokens
	_, list, found := strings.Cut(strings.TrimSuffix(in.Text, "]"), "; names in it: ")
	if !found {
		a.without++
		return
	}
	list, _, _ = strings.Cut(list, "]\n[") // images follow
	size := count(c, list)
	if size > budget {
		t.Errorf("names of %d tokens, more than %d: %s", size, budget, list)
	}
	a.nameTokens += size
	for name := range strings.FieldsSeq(list) {
		a.names++
		if !strings.Contains(blk.Text, name) {
			t.Errorf("the name %q is not in the result", name)
		}
	}
}

func messagesOf(s *furl.State) []*furl.Message {
	list := make([]*furl.Message, s.Len())
	for i := range list {
		_, list[i] = s.Message(i)
	}
	return list
}
