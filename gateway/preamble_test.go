package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// Instructions that are others in each request, and more or fewer of them,
// leave a conversation where it is, and go out as they came.
func TestChangingInstructions(t *testing.T) {
	for format, list := range map[furl.Format]string{furl.FormatChat: "messages", furl.FormatResponses: "input"} {
		t.Run(string(format), func(t *testing.T) {
			st := newFixture(t, &sim.Options{Window: 16_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 30})}, &session.Options{Window: 16_000}, nil)
			a := &agent{format: format, model: "gpt-5"}
			a.say("Look at everything there is.")
			n := 0
			a.extra = func(body []byte) []byte {
				var m map[string]json.RawMessage
				var msgs []json.RawMessage
				if json.Unmarshal(body, &m) != nil || json.Unmarshal(m[list], &msgs) != nil {
					t.Fatalf("%s", body)
				}
				lead := []json.RawMessage{mustJSON(map[string]any{"role": "system", "content": fmt.Sprintf("It is %d o'clock.", n)})}
				if n%3 == 2 {
					lead = append(lead, mustJSON(map[string]any{"role": "developer", "content": "Mind the time."}))
				}
				if n > 0 && n%7 == 0 {
					lead = nil
				}
				m[list] = mustJSON(append(lead, msgs...))
				return mustJSON(m)
			}
			for n < 60 && a.step(t, st, output) {
				n++
			}
			for i, r := range st.sim.Requests() {
				if r.Verdict != sim.VerdictOK {
					t.Errorf("request %d was refused: %s", i, r.Error)
				}
				if want := fmt.Sprintf("It is %d o'clock.", i); (i == 0 || i%7 != 0) && !bytes.Contains(r.Body, []byte(want)) || bytes.Count(r.Body, []byte("o'clock")) > 1 {
					t.Errorf("request %d does not say just %q: %.300s", i, want, r.Body)
				}
			}
			if infos := st.list(t); len(infos) != 1 {
				t.Fatalf("%d sessions, want 1", len(infos))
			}
			s, err := st.sessions.Find(t.Context(), session.Latest)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(s.Branches()); n != 1 {
				t.Errorf("%d branches, want 1", n)
			}
			if n := len(s.Reductions()); n < 3 {
				t.Errorf("%d reductions, want 3 or more", n)
			}
			if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("the session: %v %v", problems, err)
			}
		})
	}
}
