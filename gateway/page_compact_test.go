package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// visitPage is a page that keeps what the gateway passes to it.
type visitPage struct {
	testPage
	visit *gateway.Visit
}

func (p visitPage) ServePage(_ http.ResponseWriter, _ *http.Request, v gateway.Visit) { *p.visit = v }

// compactorOf returns the Compactor that the page of a gateway gets.
func (st *fixture) compactorOf(t testing.TB, v *gateway.Visit) gateway.Compactor {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, st.front.URL+"/furl/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return v.Compactor
}

// requested returns the text of the newest request for a summary.
func (p *gated) requested(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		t.Fatal("no summary was requested")
	}
	var out strings.Builder
	for _, m := range p.asked[len(p.asked)-1].Messages {
		for i := range m.Blocks {
			out.WriteString(m.Blocks[i].Text)
		}
	}
	return out.String()
}

// A person has the context compacted: with a key of the gateway at once, without one after
// the next request and with the client's credential.
func TestPageCompacts(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, key := range []string{"", "planted-key-of-the-gateway"} {
			t.Run(string(format)+" key "+key, func(t *testing.T) {
				var v gateway.Visit
				p := &gated{}
				st := compacting(t, p, &gateway.Options{Page: visitPage{visit: &v}, Summaries: gateway.SummaryOptions{Key: key}},
					func(o *session.Options) { o.Policy = "none"; o.Policies = policy.NewSet() })
				a := newAgent(format, false)
				for range 6 {
					a.step(t, st, few)
				}
				s, c := st.only(t), st.compactorOf(t, &v)
				model, now := c.WritesNow(s)
				if now != (key != "") || model != modelOf(format) {
					t.Fatalf("WritesNow: %q, %v", model, now)
				}
				rec, err := c.Compact(t.Context(), s, operation.Compaction{Focus: "the tests"})
				if err != nil {
					t.Fatal(err)
				}
				if key == "" {
					if what, ok := c.Wanted(s); rec != 0 || !ok || what.Focus != "the tests" {
						t.Fatalf("record %d, wanted %+v %v", rec, what, ok)
					}
					if !c.Cancel(s) || c.Cancel(s) {
						t.Error("a summary can be cancelled once")
					}
					if _, err := c.Compact(t.Context(), s, operation.Compaction{Focus: "the tests"}); err != nil {
						t.Fatal(err)
					}
					a.step(t, st, few)
					st.gateway.WaitSummaries()
					if _, ok := c.Wanted(s); ok {
						t.Error("the summary is still to be written")
					}
				}
				if text := p.requested(t); !strings.Contains(text, "in particular: the tests") {
					t.Errorf("the request has no focus:\n%.500s", text)
				}
				list := s.Reductions()
				if len(list) != 1 || list[0].Stage != "compact" || list[0].By != furl.Person || list[0].Summary == "" || !list[0].Shown {
					t.Fatalf("reductions %+v", list)
				}
				if rec != 0 && list[0].Seq != rec {
					t.Errorf("record %d, want %d", list[0].Seq, rec)
				}
				a.step(t, st, few)
				st.allOK(t)
			})
		}
	}
}

// A summary that fails changes nothing, and says why. Users of a shared gateway do not use
// its key.
func TestPageCompactFails(t *testing.T) {
	var v gateway.Visit
	p := &gated{reply: func(*protocol.Request) (sim.Reply, error) { return sim.Text("  "), nil }}
	st := compacting(t, p, &gateway.Options{Page: visitPage{visit: &v}, Summaries: gateway.SummaryOptions{Key: "k"}},
		func(o *session.Options) { o.Policy = "none" })
	a := newAgent(furl.FormatAnthropic, false)
	for range 6 {
		a.step(t, st, few)
	}
	s, c := st.only(t), st.compactorOf(t, &v)
	if _, err := c.Compact(t.Context(), s, operation.Compaction{}); err == nil {
		t.Error("a summary without text was used")
	}
	if _, err := c.Compact(t.Context(), s, operation.Compaction{}); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("right after a failure: %v", err)
	}
	if n := len(s.Reductions()); n != 0 {
		t.Errorf("%d reductions", n)
	}

	off := compacting(t, &gated{}, &gateway.Options{Page: visitPage{visit: &v}, Summaries: gateway.SummaryOptions{Off: true}})
	if c := off.compactorOf(t, &v); c != nil {
		t.Error("summaries are off, and the page can request one")
	}
}
