package sim_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/transcript"
)

func TestClientWorks(t *testing.T) {
	for _, d := range dialects {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%t", d.name, stream), func(t *testing.T) {
				s, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 10, Parallel: 3, Thinking: 20})})
				c := sim.Client{URL: srv.URL, Format: formatOf(d.name), Model: d.model, Stream: stream, System: "You are under test."}
				if err := c.Say("Look around."); err != nil {
					t.Fatal(err)
				}
				reply, err := c.Work(t.Context(), func(call furl.Block) string { return "output of " + call.ID })
				if err != nil {
					t.Fatal(err)
				}
				if text := reply.Messages[len(reply.Messages)-1].Blocks[0].Text; !strings.HasPrefix(text, "Done after 10 steps.") {
					t.Errorf("ends with %q", text)
				}
				if b := s.Bill(); b.Requests != 11 || c.Requests != 11 || b.Refused != 0 || b.Usage.CacheRead == 0 && d.name == "anthropic" {
					t.Errorf("%d requests, %+v", c.Requests, b)
				}
			})
		}
	}
}

func TestClientErrors(t *testing.T) {
	_, srv := serve(t, nil)
	for _, d := range dialects {
		c := sim.Client{URL: srv.URL, Format: formatOf(d.name), Model: d.model, Stream: true}
		if err := c.Say("hi"); err != nil {
			t.Fatal(err)
		}
		before := len(c.History)
		for _, fault := range []string{"529", "error=3", "cut=3", "overflow"} {
			c.Header = http.Header{"Authorization": {"Bearer k"}, sim.FaultHeader: {fault}}
			_, err := c.Send(t.Context())
			refusal, refused := errors.AsType[*protocol.Refusal](err)
			if err == nil || refused == (fault == "cut=3") || fault == "529" && refusal.Status != 529 {
				t.Errorf("%s %s: %v", d.name, fault, err)
			}
			if len(c.History) != before {
				t.Errorf("%s %s: the history has grown", d.name, fault)
			}
		}
	}
}

func TestClientFollows(t *testing.T) {
	s := demo.Recording().Sessions[0]
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			double, srv := serve(t, &sim.Options{Player: sim.NewPlayback(s)})
			c := sim.Client{URL: srv.URL, Format: formatOf(d.name), Model: d.model, Stream: true}
			if err := c.Follow(t.Context(), s, 40); err != nil || c.Requests != 40 {
				t.Errorf("%d requests: %v", c.Requests, err)
			}
			if b := double.Bill(); b.Refused > 0 || b.Requests != 40 {
				t.Errorf("%+v", b)
			}
			other := sim.Client{URL: srv.URL, Format: formatOf(d.name), Model: d.model, Header: http.Header{"Authorization": {"Bearer k"}}}
			stray := sim.New(&sim.Options{})
			strayed := serveHandler(t, stray)
			other.URL = strayed.URL
			if err := other.Follow(t.Context(), s, 40); err == nil || !strings.Contains(err.Error(), "but the recording continues with") {
				t.Errorf("another model: %v", err)
			}
		})
	}
}

// Every recording can be followed in its original format and in another.
func TestClientFollowsRecordings(t *testing.T) {
	dir := recordings.Dir(t)
	most, sessions := 40, 2
	if raceDetector {
		most, sessions = 10, 1
	}
	for rec, err := range transcript.Walk(dir) {
		if err != nil {
			continue // package transcript tests the import
		}
		for i, s := range rec.Sessions {
			if i >= sessions || s.Calls == 0 {
				continue
			}
			for _, d := range dialects {
				if s.Wire != formatOf(d.name) && rec.Format == "openai-chat" {
					continue // its ids repeat, which only its format allows
				}
				t.Run(fmt.Sprintf("%s/%d/%s", rec.File[len(dir):], i, d.name), func(t *testing.T) {
					double, srv := serve(t, &sim.Options{Player: sim.NewPlayback(s), Window: 10_000_000})
					c := sim.Client{URL: srv.URL, Format: formatOf(d.name), Model: d.model, Stream: i%2 == 0}
					err := c.Follow(t.Context(), s, most)
					if err != nil && s.Compactions > 0 && strings.Contains(err.Error(), "but the recording continues with") {
						// What the agent kept after compacting may be equal
						// to its start, so that the two cannot be
						// distinguished.
						t.Logf("after %d requests: %v", c.Requests, err)
						err = nil
					}
					if err != nil {
						t.Errorf("after %d requests: %v", c.Requests, err)
					}
					if b := double.Bill(); b.Refused > 0 || c.Requests == 0 {
						t.Errorf("%+v", b)
					}
				})
			}
		}
	}
}
