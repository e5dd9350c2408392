package gateway_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/nextinput"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// inputCost is what the input of the newest request of the client was billed.
func inputCost(t *testing.T, st *pausing) float64 {
	t.Helper()
	_, asked := st.pings()
	u := asked[len(asked)-1].Usage
	// claude-sonnet-4-5: dollars per million tokens.
	return (float64(u.Input)*3 + float64(u.CacheRead)*0.3 + float64(u.CacheWrite)*3.75 + float64(u.CacheWrite1h)*6) / 1e6
}

// The next message costs what was said: while the cache lives, and after, with what the
// policy hides then, which it then does and says.
func TestNextInput(t *testing.T) {
	for _, policy := range []string{"none", "auto"} {
		t.Run(policy, func(t *testing.T) {
			pause(t, sim.Options{}, session.Options{Policy: policy}, gateway.Options{HourCache: protocol.HourNever}, func(t *testing.T, st *pausing) {
				st.fields = instructions()
				st.history = results(12)
				st.ask(t, 1)
				s := st.session(t)
				next, err := s.NextInput(t.Context())
				if err != nil || next == nil {
					t.Fatal(next, err)
				}
				if got := next.Expires.Sub(next.Used); got != 5*time.Minute {
					t.Errorf("the cache lives %v", got)
				}
				if info := s.Info(); info.Ledger.Next == nil || *info.Ledger.Next != *next {
					t.Errorf("the ledger has %+v, want %+v", info.Ledger.Next, next)
				}
				var reply struct {
					Next  *storage.NextInput `json:"next_input"`
					Words string             `json:"next_input_text"`
				}
				if err := json.Unmarshal(st.get(t, "/furl/v1/sessions/"+string(s.ID())+"/context"), &reply); err != nil || reply.Next == nil || reply.Next.Warm != next.Warm || reply.Words != nextinput.Words(next, time.Now()) {
					t.Errorf("the API has %+v, %v", reply, err)
				}
				st.ask(t, 1)
				if got := inputCost(t, st); math.Abs(got-next.Warm) > 0.01*next.Cold.Full {
					t.Errorf("warm: billed $%.4f, said $%.4f", got, next.Warm)
				}
				if next, err = s.NextInput(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(6 * time.Minute)
				st.history = withoutMark(withoutMark(st.history))
				if !nextinput.Expired(next, time.Now()) {
					t.Error("the cache lives after six minutes")
				}
				st.ask(t, 1)
				want := next.Cold.Full
				if policy == "auto" {
					want = next.Cold.Reduced
				} else if next.Cold.Hidden != 0 {
					t.Errorf("policy none hides %d tokens", next.Cold.Hidden)
				}
				// What was said is without the message that is sent.
				if got := inputCost(t, st); math.Abs(got-want) > 0.015*next.Cold.Full {
					t.Errorf("cold: billed $%.4f, said %+v", got, next.Cold)
				}
				if policy == "none" {
					return
				}
				if next.Cold.Reduced > 0.5*next.Cold.Full {
					t.Errorf("little is hidden: %+v", next.Cold)
				}
				if got := nextinput.Explain(next, time.Now()); !strings.Contains(got, "hiding has no extra cost: with the next message auto hides") {
					t.Errorf("%q", got)
				}
				reduced := s.Reductions()
				if len(reduced) == 0 || !strings.Contains(reduced[len(reduced)-1].Reason, "prompt cache expired: no extra cost") {
					t.Errorf("the reductions are %+v", reduced)
				}
			})
		})
	}
}

// results are messages of an agent that has read so many files and not edited them.
func results(n int) (list []json.RawMessage) {
	list = append(list, mustJSON(map[string]any{"role": "user", "content": "Look at the files."}))
	for i := range n {
		id := "toolu_" + string(rune('a'+i))
		list = append(list,
			mustJSON(map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "read", "input": map[string]any{"path": id + ".txt"}}}}),
			mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": id + strings.Repeat(" some words of a file", 800)}}}),
		)
	}
	return append(list, mustJSON(map[string]any{"role": "assistant", "content": "I have read them."}))
}

// get reads from the gateway.
func (st *pausing) get(t *testing.T, path string) []byte {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := st.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d: %s, %v", path, resp.StatusCode, body, err)
	}
	return body
}
