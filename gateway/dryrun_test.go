package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// A dry run, asked for by the request or by the gateway's options, sends every
// request as it came and says what would be hidden; nothing of that is
// recorded, and everything that was said is. X3
func TestDryRun(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s all=%v", format, all), func(t *testing.T) {
				headers := []string{"X-Furl-Dry-Run", "true"}
				if all {
					headers = nil
				}
				st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 12})},
					&session.Options{Policy: "rolling-mask-5"}, &gateway.Options{DryRun: all})
				a := &agent{format: format, model: "claude-sonnet-4-5"}
				if format != furl.FormatAnthropic {
					a.model = "gpt-5"
				}
				a.say("Look at everything there is.")
				for a.step(t, st, output, headers...) {
				}
				a.say("And now?")
				body := a.body()
				resp, _ := st.post(t, a.path(), body, headers...)
				h := resp.Header
				before, _ := strconv.Atoi(h.Get("X-Furl-Tokens-Before"))
				after, _ := strconv.Atoi(h.Get("X-Furl-Tokens-After"))
				if h.Get("X-Furl-Dry-Run") != "true" || h.Get("X-Furl-Session") == "" || before <= after || after == 0 {
					t.Errorf("the answer says %v", h)
				}
				if plan := h.Get("X-Furl-Plan"); !strings.HasPrefix(plan, "mask;tokens=") || !strings.Contains(plan, ";saves=") {
					t.Errorf("the plan is told as %q", plan)
				}
				got := st.sim.Requests()
				if last := got[len(got)-1]; !bytes.Equal(last.Body, body) {
					t.Error("what was sent is not what came")
				}
				s, err := st.sessions.Find(t.Context(), session.Latest)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(s.Reductions()); n != 0 {
					t.Errorf("%d reductions were recorded", n)
				}
				if n, want := s.Info().Messages, len(a.history); n < want {
					t.Errorf("%d messages were recorded, the client has %d", n, want)
				}
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("the session: %v %v", problems, err)
				}
			})
		}
	}
}

// A dry run says why nothing would be hidden.
func TestDryRunOfNothing(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(nil)}, nil, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("Hello.")
	resp, _ := st.post(t, a.path(), a.body(), "X-Furl-Dry-Run", "1")
	if note := resp.Header.Get("X-Furl-Note"); !strings.HasPrefix(note, "nothing would be hidden") {
		t.Errorf("the note is %q", note)
	}
}

// count_tokens as a dry run answers for the whole request, says what would be
// hidden, and leaves no trace.
func TestDryRunOfCount(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 12})}, &session.Options{Policy: "rolling-mask-5"}, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("Look at everything there is.")
	for a.step(t, st, output) {
	}
	s, err := st.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	n := len(s.Records(0))
	a.extra = func(body []byte) []byte { return bytes.Replace(body, []byte(`"max_tokens":1000,`), nil, 1) }
	_, whole := st.post(t, "/v1/messages/count_tokens", a.body(), "X-Furl-Bypass", "true")
	resp, dry := st.post(t, "/v1/messages/count_tokens", a.body(), "X-Furl-Dry-Run", "true")
	_, reduced := st.post(t, "/v1/messages/count_tokens", a.body())
	if !bytes.Equal(whole, dry) || bytes.Equal(dry, reduced) {
		t.Errorf("counted %s as a dry run, %s without furl, %s with it", dry, whole, reduced)
	}
	if resp.Header.Get("X-Furl-Dry-Run") != "true" || resp.Header.Get("X-Furl-Tokens-After") == "" {
		t.Errorf("the answer says %v", resp.Header)
	}
	if got := len(s.Records(0)); got != n {
		t.Errorf("%d records, before it were %d", got, n)
	}
}

// Dry runs here and there in a session whose model binds thinking to the prompt:
// no request is refused, and none makes the provider drop thinking.
func TestDryRunThinking(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1000, Thinking: 25})},
		&session.Options{Policy: "rolling-mask-5"}, nil)
	n, left, dry := 0, 0, false
	c := sim.Client{
		HTTP: &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			dry = n%7 > 4
			req.Header.Set("X-Furl-Dry-Run", strconv.FormatBool(dry))
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err == nil && dry {
				l, _ := strconv.Atoi(resp.Header.Get("X-Furl-Thinking-Left-Out"))
				left += l
			}
			n++
			return resp, err
		})},
		URL: st.front.URL, Format: furl.FormatAnthropic, Model: "claude-opus-5-5",
		Fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}},
	}
	if err := c.Say("Look at everything there is."); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		reply, err := c.Send(t.Context())
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		sent := st.sim.Requests()
		if got := bytes.Count(sent[len(sent)-1].Body, []byte("[observation masked")); dry && got > 0 {
			t.Fatalf("request %d, a dry run, was sent with %d hidden results", n, got)
		}
		for _, m := range reply.Messages {
			for _, b := range m.Blocks {
				if b.Kind == furl.KindCall {
					c.History = append(c.History, mustJSON(map[string]any{"role": "user", "content": []any{
						map[string]any{"type": "tool_result", "tool_use_id": b.ID, "content": output(b)},
					}}))
				}
			}
		}
	}
	if b := st.sim.Bill(); b.Refused != 0 || b.ThinkingDropped != 0 {
		t.Errorf("%d refused, %d thinking blocks were left to the provider to drop", b.Refused, b.ThinkingDropped)
	}
	if left == 0 {
		t.Error("no dry run told of thinking that was left out")
	}
	s, err := st.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
}

// A dry run that is too long is refused as it would be without furl.
func TestDryRunTooLong(t *testing.T) {
	st := newFixture(t, &sim.Options{Window: 8_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 30})},
		&session.Options{Window: 200_000, Policy: "rolling-mask-5"}, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("Look at everything there is.")
	for {
		body := a.body()
		resp, answer := st.post(t, a.path(), body, "X-Furl-Dry-Run", "true")
		if resp.StatusCode == http.StatusBadRequest {
			if !bytes.Contains(answer, []byte("prompt is too long")) {
				t.Errorf("refused with %s", answer)
			}
			break
		}
		if len(a.history) > 60 {
			t.Fatal("nothing was too long")
		}
		a.step(t, st, output, "X-Furl-Dry-Run", "true")
	}
}

// A client that asks for a session by a name that none can have is told, and
// served all the same.
func TestSessionHeader(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(nil)}, nil, nil)
	body := []byte(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Hello."}]}`)
	for _, c := range []struct{ asked, got, note string }{
		{"mine-1", "mine-1", ""},
		{"my session", "", "X-Furl-Session: invalid session id ignored"},
		{"latest", "", "X-Furl-Session: reserved session id ignored"},
		{".", "", "X-Furl-Session: reserved session id ignored"},
		{"..", "", "X-Furl-Session: reserved session id ignored"},
		{"-h", "", "X-Furl-Session: reserved session id ignored"},
		{"--yes", "", "X-Furl-Session: reserved session id ignored"},
	} {
		resp, answer := st.post(t, "/v1/messages", body, "X-Furl-Session", c.asked)
		got, note := resp.Header.Get("X-Furl-Session"), resp.Header.Get("X-Furl-Note")
		if resp.StatusCode != 200 || got == "" || c.got != "" && got != c.got || !strings.HasPrefix(note, c.note) || (c.note == "") != (note == "") {
			t.Errorf("asked for %q: %d, session %q, note %q\n%s", c.asked, resp.StatusCode, got, note, answer)
		}
		if c.note != "" && got == c.asked {
			t.Errorf("there is a session %q", got)
		}
	}
}
