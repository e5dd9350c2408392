package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// talk says something and has it answered.
func talk(t testing.TB, c *sim.Client, words string) *furl.Reply {
	t.Helper()
	if err := c.Say(words); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// client is the agent as one of the sim's.
func (a *agent) client(st *stand) *sim.Client {
	return &sim.Client{URL: st.front.URL, Format: a.format, Model: a.model, Stream: a.stream}
}

// What goes wrong with the request behind a recall is told to the client in its
// format, nothing hangs, and trying again works: in the same session, where the
// recall need not be made again if nothing but it was said. R4
func TestRecallThenFault(t *testing.T) {
	for _, fault := range []string{"529 retry-after=1", "500", "cut=2", "error=2", "overflow"} {
		for _, words := range []string{"", "text: Let me look.\n"} {
			t.Run(fmt.Sprintf("%s,words=%t", fault, words != ""), func(t *testing.T) {
				eachFormat(t, func(t *testing.T, a *agent) {
					if strings.HasPrefix(fault, "error") && !a.stream {
						return // an answer in one piece has no events
					}
					st := recallStand(t, "-- 1 --\ntext: Hello.\n-- 2 --\n"+words+`call: memory_get {"handle":"furl:1.0"}
-- 3 --
text: never
fault: `+fault+`
-- 4 --
text: It was hello.
-- 5 --
text: Bye.
`)
					c := a.client(st)
					talk(t, c, "hello there")
					if err := c.Say("What did I say?"); err != nil {
						t.Fatal(err)
					}
					reply, err := c.Send(t.Context())
					if err == nil {
						t.Fatalf("the client took a broken reply for whole: %q", said(reply))
					}
					if refusal, ok := errors.AsType[*furl.Refusal](err); !a.stream && strings.HasPrefix(fault, "5") {
						if !ok || fmt.Sprint(refusal.Status) != fault[:3] {
							t.Errorf("the client is told %v", err)
						}
					}
					if reply, err = c.Send(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got := said(reply); !slices.Equal(got, []string{"It was hello."}) {
						t.Errorf("at the second try the client has %q", got)
					}
					talk(t, c, "bye")
					list := st.sim.Requests()
					last := string(list[len(list)-1].Body)
					if recalled := strings.Contains(last, "[furl:1.0]"); recalled != (words == "") && fault != "overflow" {
						t.Errorf("the answer of recall is in the last request: %t\n%s", recalled, last)
					}
					for _, r := range list {
						if r.Verdict == sim.VerdictRefused {
							t.Errorf("request %d was refused: %s", r.N, r.Error)
						}
					}
					s, err := st.sessions.Find(t.Context(), session.Latest)
					if err != nil {
						t.Fatal(err)
					}
					if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
						t.Errorf("the session: %v %v", problems, err)
					}
				})
			})
		}
	}
}

// An answer that breaks off without a call of recall reaches the client as far as
// it came, byte for byte, and as one that is not whole.
func TestRecallAndBrokenAnswers(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		for _, fault := range []string{"cut=4", "cut=7", "error=4"} {
			if !a.stream && strings.HasPrefix(fault, "error") {
				continue
			}
			st := recallStand(t, "-- 1 --\nthink: hm\ntext: Grüße, здравствуйте.\ncall: bash {}\nfault: "+fault+"\n")
			a.history = nil
			a.say("hello there")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, st.front.URL+a.path(), bytes.NewReader(a.body()))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer x")
			req.Header.Set("Anthropic-Version", "2023-06-01")
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			through, readErr := io.ReadAll(resp.Body)
			resp.Body.Close()
			sent := st.sim.Requests()[0].Answer
			if len(sent) == 0 || !bytes.HasPrefix(through, sent) {
				t.Errorf("%s: the client got\n%s\nthe provider sent\n%s", fault, through, sent)
			}
			if tail := through[min(len(sent), len(through)):]; strings.HasPrefix(fault, "cut") && readErr == nil && !bytes.Contains(tail, []byte("cut off")) {
				t.Errorf("%s: the client may take it for whole: %s", fault, through)
			}
		}
	})
}

// A client that leaves while the model recalls is not gone on for, and finds
// the answer in its session when it asks again.
func TestRecallForAClientThatLeft(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		ctx, leave := context.WithCancel(t.Context())
		var n atomic.Int64
		left := make(chan struct{})
		st := newStand(t, &sim.Options{Player: sim.PlayerFunc(func(_ context.Context, req *furl.Request) (sim.Reply, error) {
			if n.Add(1) == 1 {
				leave()
				<-left // the gateway may notice at any time
				return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: session.ToolGet, Args: []byte(`{"handle":"furl:1.0"}`)}}}, nil
			}
			return sim.Text("It was hello."), nil
		})}, nil, &gateway.Options{Recall: true})
		c := a.client(st)
		if err := c.Say("hello there"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(ctx); err == nil {
			t.Fatal("a client that left has a reply")
		}
		close(left)
		st.restart(t, nil, &gateway.Options{Recall: true})
		c.URL = st.front.URL
		reply, err := c.Send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := said(reply); !slices.Equal(got, []string{"It was hello."}) {
			t.Errorf("the client has %q", got)
		}
		for _, r := range st.sim.Requests() {
			if r.Verdict == sim.VerdictRefused {
				t.Errorf("request %d was refused: %s", r.N, r.Error)
			}
		}
	})
}
