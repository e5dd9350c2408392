package gateway_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/embedtest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/recall/embeddings"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// Under rolling eviction everything that goes was stored before, and the model
// itself finds it: by its words, and where it knows none of them by its meaning.
func TestR4EvictedIsFound(t *testing.T) {
	const lost = "The deployment pipeline needs credentials for the registry."
	queries := []string{"registry credentials", "deployments pipelining"}
	steps, answers := 0, []string{}
	player := sim.PlayerFunc(func(_ context.Context, req *protocol.Request) (sim.Reply, error) {
		last := req.Messages[len(req.Messages)-1].Blocks
		if b := last[len(last)-1]; b.Kind == furl.KindResult && (strings.HasPrefix(b.Text, "Search results") || strings.HasPrefix(b.Text, "No hidden")) {
			answers = append(answers, b.Text)
		}
		switch n := len(answers); {
		case steps < 30:
			steps++
			return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: "bash"}}}, nil
		case n < len(queries):
			return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: exchange.ToolSearch, Args: fmt.Appendf(nil, `{"query":%q}`, queries[n])}}}, nil
		}
		return sim.Text("Found."), nil
	})
	model := sim.New(&sim.Options{Window: 16_000, Player: player, KeepBodies: true})
	direct := httptest.NewServer(model)
	defer direct.Close()
	store := inmem.New()
	defer store.Close()
	vectors, err := recall.NewVectors(store, embeddings.New(embedtest.New(t).URL, "test", &embeddings.Options{Wait: time.Microsecond}), nil)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := session.New(store, &session.Options{Window: 16_000, Policy: "rolling", Vectors: vectors})
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(direct.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, &gateway.Options{Recall: true, Summaries: gateway.SummaryOptions{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(patient{g})
	defer front.Close()
	c := &sim.Client{URL: front.URL, Format: furl.FormatAnthropic, Model: "claude-sonnet-4-5", Stream: true}
	if err := c.Say("Look at everything there is."); err != nil {
		t.Fatal(err)
	}
	ran := 0
	if _, err := c.Work(t.Context(), func(furl.Block) string {
		if ran++; ran == 30 {
			if err := vectors.CatchupTenant(t.Context(), ""); err != nil {
				t.Error(err)
			}
		}
		text := strings.Repeat(fmt.Sprintf("filler number%d and nothing else on this line\n", ran), 70)
		if ran == 2 {
			text = lost + "\n" + text
		}
		return text
	}); err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(queries) {
		t.Fatalf("%d answers: %q", len(answers), answers)
	}
	for i, a := range answers {
		if !strings.Contains(a, lost) {
			t.Errorf("a search for %q gives\n%s", queries[i], a)
		}
	}
	s, err := sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	evicted := 0
	for n := 1; n <= 30; n++ {
		hits, err := s.Search(t.Context(), fmt.Sprintf("number%d", n), session.SearchOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) == 1 && strings.Contains(hits[0].Excerpt, fmt.Sprintf("number%d ", n)) {
			evicted++
		}
	}
	hidden := 0
	st := sessiontest.Log(t, s).State()
	for i := range st.Len() {
		seq, m := st.Message(i)
		for k := range m.Blocks {
			if m.Blocks[k].Kind == furl.KindResult && !m.Blocks[k].Own && st.ShownBy(furl.Pos{Msg: seq, Block: k}) != 0 {
				hidden++
			}
		}
	}
	if evicted != hidden || hidden < 10 {
		t.Errorf("%d of %d evicted results are found", evicted, hidden)
	}
	if n := model.Bill().Refused; n > 0 {
		t.Errorf("%d requests were refused", n)
	}
}
