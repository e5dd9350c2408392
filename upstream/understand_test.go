package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// formats are requests to the sim; STREAM stands for whether to stream.
var formats = []struct {
	codec      furl.Codec
	path, body string
}{
	{anthropic.Codec, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":4000,"stream":STREAM,"thinking":{"type":"enabled","budget_tokens":2000},"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"}]}`},
	{openai.Chat, "/v1/chat/completions", `{"model":"gpt-5","stream":STREAM,"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"hi"}]}`},
	{openai.Responses, "/v1/responses", `{"model":"gpt-5","store":false,"include":["reasoning.encrypted_content"],"stream":STREAM,"tools":[{"type":"function","name":"read","parameters":{"type":"object"}}],"input":"hi"}`},
}

// model says the same to everybody.
var model = sim.PlayerFunc(func(context.Context, *furl.Request) (sim.Reply, error) {
	return sim.Reply{Blocks: []furl.Block{
		{Kind: furl.KindThinking, Text: "Grüße überlegen: 𝄞."},
		{Kind: furl.KindText, Text: "Ich lese zwei Dateien — gleich, mit \"Zitat\" und\nZeilen."},
		{Kind: furl.KindCall, ID: "call_1", Name: "read", Args: json.RawMessage(`{"path":"a/größe.go","lines":[1,2,30]}`)},
		{Kind: furl.KindCall, ID: "call_2", Name: "read", Args: json.RawMessage(`{}`)},
	}}, nil
})

func simulated(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(sim.New(&sim.Options{Player: model, Seed: 7}))
	t.Cleanup(s.Close)
	return s
}

// ask sends a request and gives what came back, status and bytes.
func ask(t *testing.T, url, body, fault string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"key"}, "Authorization": {"Bearer key"}, "Anthropic-Version": {"2023-06-01"}, sim.FaultHeader: {fault}}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(got), err
}

// Whatever happens at the provider's, a client of the relay gets what it would
// have got there, and what was understood is what came.
func TestRelayAgainstTheSim(t *testing.T) {
	for _, f := range formats {
		var whole *furl.Reply
		for _, streamed := range []bool{false, true} {
			for _, fault := range []string{"", "ping", "split=bytes", "split=lines", "split=utf8", "args=odd", "cut=1", "cut=4", "error=3", "429 retry-after=2", "529", "500", "overflow", "overflow=stream"} {
				name := fmt.Sprintf("%s streamed=%v %s", f.codec.Format(), streamed, fault)
				body := strings.Replace(f.body, "STREAM", fmt.Sprint(streamed), 1)
				if streamed && f.codec == openai.Chat { // else it does not tell the usage
					body = strings.Replace(body, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
				}
				status, want, wantErr := ask(t, simulated(t).URL+f.path, body, fault)

				var reply *furl.Reply
				var notUnderstood error
				c := client(t, simulated(t).URL, nil)
				g := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					in, _ := io.ReadAll(r.Body)
					resp, err := c.Do(r.Context(), &Request{Method: r.Method, URL: r.URL, Header: r.Header, Body: in, Understand: true})
					if err != nil {
						panic(http.ErrAbortHandler) // the sim cut it off before the header
					}
					defer resp.Close()
					relayed, err := c.Relay(w, resp, Understand(f.codec.(furl.ReplyCodec), resp, func(r *furl.Reply, err error) { reply, notUnderstood = r, err }))
					<-relayed.Observed
					if err != nil {
						panic(http.ErrAbortHandler)
					}
				}))
				gotStatus, got, gotErr := ask(t, g.URL+f.path, body, fault)
				g.Close()
				if gotStatus != status || (gotErr == nil) != (wantErr == nil) {
					t.Errorf("%s: status %d, %v; directly %d, %v", name, gotStatus, gotErr, status, wantErr)
				}
				if diff := cmp.Diff(timeless(want), timeless(got)); diff != "" {
					t.Errorf("%s: -direct +relayed:\n%s", name, diff)
				}
				if reply == nil {
					if status != 0 {
						t.Errorf("%s: nothing was understood", name)
					}
					continue
				}
				if notUnderstood != nil {
					t.Errorf("%s: %v", name, notUnderstood)
				}
				checkUnderstood(t, name, fault, status, reply, &whole)
			}
		}
	}
}

// timeless blanks the times that answers bear.
func timeless(s string) string {
	for _, field := range []string{`"created":`, `"created_at":`, `"completed_at":`} {
		parts := strings.Split(s, field)
		for i := 1; i < len(parts); i++ {
			parts[i] = strings.TrimLeft(parts[i], "0123456789.")
		}
		s = strings.Join(parts, field)
	}
	return s
}

// checkUnderstood holds a reply to what the fault leaves of it.
func checkUnderstood(t *testing.T, name, fault string, status int, reply *furl.Reply, whole **furl.Reply) {
	t.Helper()
	if strings.HasPrefix(fault, "cut") {
		if reply.Complete {
			t.Errorf("%s: a reply that was cut off is complete", name)
		}
		return
	}
	if status >= 400 || reply.Refusal != nil {
		if reply.Complete || reply.Refusal == nil || reply.Refusal.Message == "" || status >= 400 && reply.Refusal.Status != status {
			t.Errorf("%s: status %d, complete %v, refusal %+v", name, status, reply.Complete, reply.Refusal)
		}
		if (reply.Overflow != nil) != strings.HasPrefix(fault, "overflow") {
			t.Errorf("%s: overflow %+v", name, reply.Overflow)
		}
		return
	}
	if fault == "error=3" && !strings.Contains(name, "streamed=false") {
		t.Errorf("%s: the error went unseen", name)
	}
	if !reply.Complete || reply.ID == "" || reply.Model == "" || reply.Stop == "" || reply.Usage.Output == 0 {
		t.Errorf("%s: %+v", name, reply)
	}
	if *whole == nil {
		*whole = reply
	}
	if want, got := said(*whole), said(reply); want != got {
		t.Errorf("%s: understood\n%s\nwant\n%s", name, got, want)
	}
}

// said is what a reply says, ids of its own aside.
func said(r *furl.Reply) string {
	var out strings.Builder
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			fmt.Fprintf(&out, "%s %v %q %s %s\n", m.Role, b.Kind, b.Text, b.Name, b.Args)
		}
	}
	return out.String()
}

func understood(t *testing.T, codec furl.Codec, contentType string, status int, encoding, body string, opts *Options) (*furl.Reply, error) {
	t.Helper()
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
	c := client(t, p.URL, opts)
	resp, err := c.Do(t.Context(), post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	var reply *furl.Reply
	var not error
	res, err := c.Relay(httptest.NewRecorder(), resp, Understand(codec.(furl.ReplyCodec), resp, func(r *furl.Reply, err error) { reply, not = r, err }))
	if err != nil {
		t.Fatal(err)
	}
	<-res.Observed
	if reply == nil {
		t.Fatal("no reply")
	}
	return reply, not
}

func TestWhatCannotBeUnderstood(t *testing.T) {
	chunk := `{"id":"a","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`
	for _, tc := range []struct {
		name, contentType, encoding, body string
		opts                              *Options
		want                              string
		complete                          bool
	}{
		{"a stream under another name", "text/plain", "", "data: " + chunk + "\n\ndata: [DONE]\n\n", nil, "", true},
		{"no blank line at the end", "text/event-stream", "", "data: " + chunk, nil, "", true},
		{"cut inside an event", "text/event-stream", "", "data: " + chunk[:20], nil, "", false},
		{"no JSON", "application/json", "", "<html>", nil, "decode Chat Completions reply: want an object", false},
		{"no JSON in a stream", "text/event-stream", "", "data: <html>\n\n", nil, "read Chat Completions stream: want an object", false},
		{"an encoding", "application/json", "br", "x", nil, "the answer is encoded: br", false},
		{"too large", "application/json", "", `{"choices":[]}` + strings.Repeat(" ", 100), &Options{MaxBody: 50}, "the answer is too large: over 50 bytes", false},
		{"a stream too large", "text/event-stream", "", strings.Repeat("data: "+chunk+"\n\n", 1000) + "data: [DONE]\n\n", &Options{MaxBody: 5000}, "the answer is too large: over 5000 bytes", false},
	} {
		reply, err := understood(t, openai.Chat, tc.contentType, 200, tc.encoding, tc.body, tc.opts)
		if fmt.Sprint(err) != tc.want && (err != nil || tc.want != "") || reply.Complete != tc.complete || reply.Format != furl.FormatChat {
			t.Errorf("%s: complete %v, %v", tc.name, reply.Complete, err)
		}
	}
	reply, err := understood(t, anthropic.Codec, "text/event-stream", 529, "", `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, nil)
	if err != nil || reply.Refusal == nil || reply.Refusal.Status != 529 {
		t.Errorf("an error that claims to be a stream: %+v, %v", reply.Refusal, err)
	}
}

func TestUnderstandIsLeftBehind(t *testing.T) {
	var reply *furl.Reply
	var not error
	u := Understand(anthropic.Codec, &Response{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, client: client(t, "http://x.example", nil)},
		func(r *furl.Reply, err error) { reply, not = r, err })
	u.Chunk([]byte("data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\nda"))
	u.End(ErrLost)
	if reply.ID != "m" || reply.Complete || !errors.Is(not, ErrLost) {
		t.Errorf("%+v, %v", reply, not)
	}
}
