package web_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// agent works through a gateway that serves the page, with a simulated provider.
type agent struct {
	*sim.Client
	sessions *session.Sessions
	provider *sim.Sim
	url      string
	sent     [][]byte // the bodies of the agent's requests
}

// recorder records the bodies of requests.
type recorder struct{ a *agent }

func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.a.sent = append(r.a.sent, body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(req)
}

// newAgent starts a gateway with the page, and an agent whose context is reduced often.
func newAgent(t testing.TB) *agent {
	t.Helper()
	a := &agent{provider: sim.New(&sim.Options{KeepBodies: true})}
	direct := httptest.NewServer(a.provider)
	t.Cleanup(direct.Close)
	up, err := upstream.New(direct.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	if a.sessions, err = session.New(store, &session.Options{Policy: "rolling-mask-5", Window: 30_000}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(a.sessions, gateway.Upstreams{Anthropic: up}, &gateway.Options{Page: web.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r)
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			g.Wait(context.WithoutCancel(r.Context()))
		}
	}))
	t.Cleanup(func() { g.Drain(); front.CloseClientConnections(); front.Close() })
	a.url = front.URL
	a.Client = &sim.Client{URL: front.URL, Format: furl.FormatAnthropic, Model: "claude-sonnet-4-5", HTTP: &http.Client{Transport: recorder{a}}}
	if err := a.Say("Find out why the build is slow."); err != nil {
		t.Fatal(err)
	}
	return a
}

// work makes n steps, and returns the session.
func (a *agent) work(t testing.TB, n int) *session.Session {
	t.Helper()
	for range n {
		reply, err := a.Send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var results []furl.Block
		for _, m := range reply.Messages {
			for _, b := range m.Blocks {
				if b.Kind == furl.KindCall {
					results = append(results, furl.Block{Kind: furl.KindResult, ID: b.ID, Text: fmt.Sprintf("result of %s: ", b.ID) + strings.Repeat("words of it ", 200)})
				}
			}
		}
		if len(results) == 0 {
			err = a.Say("Go on.")
		} else {
			err = a.Results(results)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := a.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The page gives the bodies of each request byte for byte: what the agent sent, and what the
// provider received.
func TestRequestBodies(t *testing.T) {
	a := newAgent(t)
	s := a.work(t, 30)
	page := a.url + "/furl/sessions/" + string(s.ID())
	reduced := 0
	for i, entry := range a.provider.Requests() {
		request := fmt.Sprintf("%s/requests/%d", page, i+1)
		if _, body := get(t, request+"/body"); body != string(entry.Body) {
			t.Errorf("request %d: the body differs from what the provider received", i+1)
		}
		if _, body := get(t, request+"/body?side=received"); body != string(a.sent[i]) {
			t.Errorf("request %d: the body differs from what the agent sent", i+1)
		}
		status, text := get(t, request+"?against=received")
		same := strings.Contains(text, "byte for byte")
		if status != 200 || same != bytes.Equal(entry.Body, a.sent[i]) {
			t.Errorf("request %d: status %d; the page says that it was sent unchanged: %v", i+1, status, same)
		}
		if !same {
			reduced++
		}
	}
	if reduced == 0 {
		t.Error("no request was reduced")
	}
	if status, _ := get(t, page+"/requests/31"); status != 404 {
		t.Errorf("a request that does not exist: status %d", status)
	}
}

// While an agent works, its messages and the reductions appear on the page.
func TestBrowserLive(t *testing.T) {
	a := newAgent(t)
	s := a.work(t, 3)
	b := browsertest.OpenURL(t, a.url+"/furl/sessions/"+string(s.ID()))
	b.Wait(`document.querySelectorAll('.row').length >= 6`)
	size := b.Text("#meter strong")
	a.work(t, 12)
	last := s.Head()
	records := sessionRecords(s)
	b.Wait(fmt.Sprintf(`!!document.getElementById('m%d')`, last))
	b.Wait(fmt.Sprintf(`document.querySelector('#meter strong').textContent != %q`, size))
	b.Wait(`!!document.querySelector('.row.marker') && document.querySelectorAll('.part.masked').length > 0`)
	b.Wait(fmt.Sprintf(`document.querySelectorAll('#transcript .row').length == %d`, records))
	if shown := browsertest.Eval[[]int](b, `[...document.querySelectorAll('#transcript .row')].map((r) => Number(r.dataset.seq))`); !slices.IsSorted(shown) {
		t.Errorf("the rows are in the order %v", shown)
	}
	b.Wait(`innerHeight + scrollY >= document.documentElement.scrollHeight - 2`)
	b.Screenshot("live")
	b.Silent()
}

// sessionRecords is the number of messages and reductions of a session without branches.
func sessionRecords(s *session.Session) (n int) {
	for _, r := range s.Records(0) {
		switch r.Body.(type) {
		case *furl.Message, *furl.Reduction:
			n++
		}
	}
	return n
}

// BenchmarkTabs measures requests to a model while 200 tabs show the session, or none.
func BenchmarkTabs(b *testing.B) {
	for _, tabs := range []int{0, 200} {
		b.Run(fmt.Sprint("tabs=", tabs), func(b *testing.B) {
			a := newAgent(b)
			s := a.work(b, 5)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for range tabs {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/furl/sessions/%s/live?after=%d", a.url, s.ID(), s.Head()), nil)
				res, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
				if err != nil || res.StatusCode != 200 {
					b.Fatal(err)
				}
				go func() { _, _ = io.Copy(io.Discard, res.Body); res.Body.Close() }()
			}
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				a.work(b, 1)
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
