package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sim"
)

// indiscreet is a provider that repeats the contents of furl's requests: after a recall,
// every second time, and for a summary.
type indiscreet struct {
	echo
	recalls, summaries atomic.Int64
}

func (p *indiscreet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway has disconnected
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case bytes.Contains(body, []byte("about to outgrow the context window")):
		r.Header.Set("X-Echo", echoes[int(p.summaries.Add(1)-1)%len(echoes)])
	case behindRecall(r.URL.Path, body):
		// furl would believe that eight tokens are too many.
		if n := int(p.recalls.Add(1) - 1); n%2 == 1 && echoes[n/2%len(echoes)] != "overflow" {
			r.Header.Set("X-Echo", echoes[n/2%len(echoes)])
		}
	}
	p.echo.ServeHTTP(w, r)
}

// shown is a client's connection. Its requests have keys in all places, and furl's
// response headers must have none.
type shown struct {
	*secretive
	t *testing.T
}

func (c *shown) RoundTrip(req *http.Request) (*http.Response, error) {
	req.URL.RawQuery = strings.TrimPrefix(secretQuery, "?")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	for name, values := range resp.Header {
		if strings.HasPrefix(name, "X-Furl-") || name == "Server-Timing" {
			clean(c.t, name, fmt.Append(nil, values), planted)
		}
	}
	return resp, nil
}

// metric returns a metric of the gateway.
func (s *secretive) metric(t *testing.T, name string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Furl-Key", cmp.Or(s.operator, s.key))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	clean(t, "the metrics", body, planted)
	clean(t, "the metrics", body, spoken)
	m := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindSubmatch(body)
	if m == nil {
		t.Fatalf("no metric %s", name)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// work sends requests until a summary was requested.
func (s *secretive) work(t *testing.T, p *indiscreet, n int) {
	t.Helper()
	format := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}[n%3]
	c := &sim.Client{URL: s.url, Format: format, Model: "gpt-5", Stream: n%2 == 0, System: spoken, HTTP: &http.Client{Transport: &shown{s, t}}, Header: s.header()}
	c.Header.Set("Session-Id", fmt.Sprint("conversation ", n))
	if format == furl.FormatAnthropic {
		c.Model, c.Fields = "claude-sonnet-4-5", map[string]any{"max_tokens": 1000, "metadata": map[string]string{"user_id": planted + "metadata"}}
	}
	if err := c.Say(fmt.Sprintf("%s of conversation %d: look at everything.", spoken, n)); err != nil {
		t.Fatal(err)
	}
	asked := p.summaries.Load()
	for tries := 0; p.summaries.Load() == asked; {
		if tries++; tries > 60 {
			t.Errorf("conversation %d: no summary was asked for", n)
			return
		}
		_, err := c.Work(t.Context(), func(call furl.Block) string {
			if p.summaries.Load() != asked {
				return "enough"
			}
			return strings.Repeat(call.ID+" prints "+spoken+"\n", 120)
		})
		if err == nil { // the task is complete
			if err := c.Say(spoken + " goes on."); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// furl's requests after a recall and for summaries leak no key and no contents either,
// whatever the provider replies. T9
func TestSecretsOfRecall(t *testing.T) {
	for _, level := range []string{"debug", "info"} {
		t.Run(level, func(t *testing.T) {
			p := &indiscreet{echo: echo{sim.New(&sim.Options{AnyField: true, Player: &rememberer{sim.NewAgent(&sim.AgentOptions{Steps: 9, Words: 60})}})}}
			provider := httptest.NewServer(p)
			defer provider.Close()
			collector, traces := newReceiver(t)
			home := t.TempDir()
			s := &secretive{key: planted + "client"}
			cmd := furlCommand(home, "serve", "--listen", "127.0.0.1:0", "--anthropic", provider.URL, "--openai", provider.URL, "--log", level, "--recall", "--policy", "compaction", "--window", "12k")
			text := "telemetry:\n  endpoint: " + traces + "\n"
			if level == "info" {
				s.operator = planted + "operator"
				text += "gateway:\n  client_keys_env: FURL_KEYS\n  operator_key_env: FURL_OPERATOR\n  tenants: true\n"
				cmd.Env = append(cmd.Env, "FURL_KEYS="+s.key, "FURL_OPERATOR="+s.operator)
			}
			if err := os.WriteFile(home+"/config.yaml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			furl := start(t, cmd)
			s.url = furl.url
			for n := range echoes {
				s.work(t, p, n)
			}
			for s.metric(t, "furl_summaries_failed_total")+s.metric(t, "furl_summaries_prepared_total") < s.metric(t, "furl_summaries_asked_total") {
				time.Sleep(time.Millisecond)
			}
			if n := s.metric(t, "furl_summaries_failed_total"); n < len(echoes)/2 {
				t.Errorf("%d summaries failed", n)
			}
			if n := s.metric(t, "furl_recalls_total"); n < len(echoes) {
				t.Errorf("%d recalls were answered", n)
			}
			if level == "debug" {
				s.own(t)
			}
			// A normal exit sends all traces, a crash prints all goroutines, of which one may be
			// in a deferred call, in runtime/panic.go.
			end := map[string]syscall.Signal{"debug": syscall.SIGQUIT, "info": syscall.SIGTERM}[level]
			if err := furl.cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			<-furl.done
			if !strings.Contains(furl.log(), "summary failed") || strings.Contains(furl.log(), "panic:") {
				t.Errorf("the log says\n%s", furl.log())
			}
			clean(t, "the log", []byte(furl.log()), planted)
			if level != "debug" {
				clean(t, "the log", []byte(furl.log()), spoken)
				collector.mu.Lock()
				defer collector.mu.Unlock()
				if collector.bad != nil || len(collector.spans) == 0 {
					t.Errorf("%d spans, %v", len(collector.spans), collector.bad)
				}
				clean(t, "the traces", collector.raw.Bytes(), planted)
				clean(t, "the traces", collector.raw.Bytes(), spoken)
			}
			scan(t, home)
			if level == "debug" {
				exports(t, home)
			}
		})
	}
}
