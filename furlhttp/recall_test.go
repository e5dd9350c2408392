package furlhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// remembering is a program whose model is offered recall tools and says what is
// written.
type remembering struct {
	*program
	sim   *sim.Sim
	all   *session.Sessions
	ended []*protocol.Reply
	base  func(n int) error // fails the n-th request; nil: none
	sent  int
}

func (r *remembering) replied(reply session.Reply) {
	r.ended = append(r.ended, reply.Reply)
}

func (r *remembering) RoundTrip(req *http.Request) (*http.Response, error) {
	r.sent++
	if r.base != nil {
		if err := r.base(r.sent); err != nil {
			return nil, err
		}
	}
	return http.DefaultTransport.RoundTrip(req)
}

func eachWay(t *testing.T, script string, f func(t *testing.T, r *remembering)) {
	for _, fam := range families {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream %v", fam.format, stream), func(t *testing.T) {
				player, err := sim.ParseScript(t.Name(), []byte(script))
				if err != nil {
					t.Fatal(err)
				}
				r := &remembering{all: sessions(t, session.Options{})}
				var url string
				r.sim, url = provider(t, sim.Options{Player: player, KeepBodies: true})
				tr := furlhttp.New(r.all, &furlhttp.Options{Base: r, Recall: true, Ended: func(_ *session.Exchange, list []session.Reply) { r.replied(list[len(list)-1]) }})
				r.program = &program{t: t, f: fam, client: &http.Client{Transport: tr}, url: url, stream: stream, store: "false"}
				r.say("hello there")
				f(t, r)
			})
		}
	}
}

func (p *program) say(words string) {
	p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: words})
}

// post sends the history and gives the answer as it comes.
func (p *program) post() (*http.Response, error) {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+p.f.path, strings.NewReader(p.body()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	return p.client.Do(req)
}

// checked holds what was sent and recorded against what it must be.
func (r *remembering) checked(requests, endings int) {
	r.t.Helper()
	log := r.sim.Requests()
	if len(log) != requests || len(r.ended) != endings {
		r.t.Errorf("%d requests and %d endings, want %d and %d", len(log), len(r.ended), requests, endings)
	}
	for _, q := range log {
		if q.Verdict == sim.VerdictRefused {
			r.t.Errorf("request %d was refused: %s\n%s", q.N, q.Error, q.Body)
		}
	}
	s, err := r.all.Find(r.t.Context(), session.Latest)
	if err != nil {
		r.t.Fatal(err)
	}
	if problems, err := s.Check(r.t.Context()); err != nil || len(problems) > 0 {
		r.t.Errorf("the session: %v %v", problems, err)
	}
}

// said lists the words and the calls of a reply.
func said(reply *protocol.Reply) (parts []string) {
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindCall {
				parts = append(parts, b.Name)
			} else if b.Text != "" {
				parts = append(parts, b.Text)
			}
		}
	}
	return parts
}

// The model searches, gets, speaks and calls a tool of the program's, which sees
// one answer; in later requests the model sees all of it.
func TestRecall(t *testing.T) {
	eachWay(t, `
-- 1 --
text: Let me look.
call: memory_search {"query":"nothing"}
-- 2 --
call: memory_get {"handle":"furl:1.0"}
-- 3 --
text: It said hello.
call: memory_get {"handle":"furl:1.0"}
call: read {"path":"a.go"}
-- 4 --
text: Goodbye.
`, func(t *testing.T, r *remembering) {
		reply := r.ask()
		want := []string{"Let me look.", "It said hello.", "read"}
		if r.f.format == furl.FormatChat {
			want = []string{"Let me look.\n\nIt said hello.", "read"}
		}
		if got := said(reply); !slices.Equal(got, want) || !reply.Complete {
			t.Errorf("the program has %q, want %q", got, want)
		}
		prompt, output := 0, 0
		for _, q := range r.sim.Requests() {
			u := q.Usage
			prompt += u.Input + u.CacheRead + u.CacheWrite + u.CacheWrite1h
			output += u.Output
		}
		if reply.Usage.Prompt() != prompt || reply.Usage.Output != output {
			t.Errorf("it is told of %+v, used were %d and %d", reply.Usage, prompt, output)
		}
		if got := said(r.ask()); !slices.Equal(got, []string{"Goodbye."}) {
			t.Errorf("then it has %q", got)
		}
		if strings.Contains(r.body(), "memory_") {
			t.Error("the program's history has a call of recall")
		}
		r.checked(4, 2)
		last := string(r.sim.Requests()[3].Body)
		if strings.Count(last, "memory_get") < 3 || !strings.Contains(last, "memory_search") {
			t.Errorf("the model does not see what it asked: %s", last)
		}
	})
}

// ownTools are furl's as a provider of Responses repeats them.
var ownTools = regexp.MustCompile(`,\{"type":"function","name":"memory_.*?"strict":false\}`)

// An answer without a call of recall comes byte for byte, but for the tools that
// the program did not send.
func TestRecallWithoutCalls(t *testing.T) {
	eachWay(t, "-- 1 --\nthink: hm\ntext: Grüße, здравствуйте.\ncall: read {\"path\":\"ü\"}\n", func(t *testing.T, r *remembering) {
		resp, err := r.post()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		q := r.sim.Requests()[0]
		want := ownTools.ReplaceAll(q.Answer, nil)
		if !bytes.Contains(q.Body, []byte("memory_get")) || !bytes.Equal(got, want) || bytes.Contains(want, []byte("memory_")) || !r.stream && resp.ContentLength != int64(len(got)) {
			t.Errorf("the program got (%d bytes)\n%s\nthe provider sent\n%s", resp.ContentLength, got, q.Answer)
		}
		r.checked(1, 1)
	})
}

// What goes wrong after a call of recall reaches the program as an error.
func TestRecallFaults(t *testing.T) {
	const script = "-- 1 --\ntext: Let me look.\ncall: memory_search {\"query\":\"nothing\"}\n-- 2 --\n%s\n-- 3 --\ntext: Here I am.\n"
	t.Run("refused", func(t *testing.T) {
		eachWay(t, fmt.Sprintf(script, "fault: 529"), func(t *testing.T, r *remembering) {
			resp, err := r.post()
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(strings.ToLower(string(got)), "overloaded") || r.stream == (resp.StatusCode == 529) {
				t.Errorf("status %d, %v: %s", resp.StatusCode, err, got)
			}
			if r.stream == !strings.Contains(string(got), "Let me look.") {
				t.Errorf("the program got %s", got)
			}
			r.recovers()
		})
	})
	t.Run("cut off", func(t *testing.T) {
		eachWay(t, fmt.Sprintf(script, "text: words and more of them\nfault: cut=2"), func(t *testing.T, r *remembering) {
			resp, err := r.post()
			if err == nil {
				defer resp.Body.Close()
				_, err = io.ReadAll(resp.Body)
			}
			if err == nil {
				t.Error("the program was told of no error")
			}
			r.recovers()
		})
	})
	t.Run("no connection", func(t *testing.T) {
		eachWay(t, fmt.Sprintf(script, "text: words"), func(t *testing.T, r *remembering) {
			gone := errors.New("the line is dead")
			r.base = func(n int) error {
				if n == 2 {
					return gone
				}
				return nil
			}
			resp, err := r.post()
			if err == nil {
				defer resp.Body.Close()
				_, err = io.ReadAll(resp.Body)
			}
			if !errors.Is(err, gone) {
				t.Errorf("the program was told of %v", err)
			}
			r.recovers()
		})
	})
}

// recovers asks once more, as a program does whose request has failed.
func (r *remembering) recovers() {
	r.t.Helper()
	if len(r.ended) != 1 {
		r.t.Errorf("it has ended %d times", len(r.ended))
	}
	for range 3 { // what is left of the script
		if got := said(r.ask()); slices.Contains(got, "Here I am.") {
			break
		}
	}
	s, err := r.all.Find(r.t.Context(), session.Latest)
	if err != nil {
		r.t.Fatal(err)
	}
	if problems, err := s.Check(r.t.Context()); err != nil || len(problems) > 0 {
		r.t.Errorf("the session: %v %v", problems, err)
	}
}

// A program that goes away does not keep furl waiting.
func TestRecallClosedEarly(t *testing.T) {
	eachWay(t, "-- 1 --\ntext: Let me look.\ncall: memory_search {\"query\":\"nothing\"}\n-- 2 --\ntext: Here it is.\n-- 3 --\ntext: Here I am.\n", func(t *testing.T, r *remembering) {
		resp, err := r.post()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resp.Body.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(resp.Body.Close(), resp.Body.Close()); err != nil {
			t.Error(err)
		}
		if n, err := resp.Body.Read(make([]byte, 8)); err == nil && n == 0 {
			t.Error("a closed body has no end")
		}
		r.recovers()
	})
}

// With Options.Finish, a reply whose caller has left is read to its end and
// recorded, also when the request had recall tools.
func TestRecallIsReadOnAfterTheCallerLeft(t *testing.T) {
	for _, fam := range families {
		t.Run(string(fam.format), func(t *testing.T) {
			player, err := sim.ParseScript(t.Name(), []byte("-- 1 --\ntext: Here is an answer of many words.\n"))
			if err != nil {
				t.Fatal(err)
			}
			_, url := provider(t, sim.Options{Player: player})
			all := sessions(t, session.Options{})
			ended := make(chan session.Reply, 1)
			tr := furlhttp.New(all, &furlhttp.Options{
				Recall: true, Finish: time.Minute,
				Ended: func(_ *session.Exchange, list []session.Reply) { ended <- list[len(list)-1] },
			})
			p := &program{t: t, f: fam, client: &http.Client{Transport: tr}, url: url, stream: true, store: "false"}
			p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "hello there"})
			resp, err := (&remembering{program: p}).post()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := resp.Body.Read(make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			last := <-ended
			if last.RecordErr != nil || last.Reply == nil || !last.Complete {
				t.Fatalf("the reply is %+v", last)
			}
			s, err := all.Find(t.Context(), session.Latest)
			if err != nil {
				t.Fatal(err)
			}
			v := s.View(fam.model)
			if got := v.Messages[len(v.Messages)-1].Msg; got.Role != furl.RoleAssistant || !strings.Contains(got.Blocks[len(got.Blocks)-1].Text, "of many words.") {
				t.Errorf("the last message is %+v", got)
			}
		})
	}
}
