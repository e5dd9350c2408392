package transcript

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The rise of a limit is the sum of what its used share rises by, also after it began anew. Values
// that are not of the newest window, or not numbers, change nothing.
func TestPlanLimits(t *testing.T) {
	var b strings.Builder
	line := func(typ, payload string) {
		fmt.Fprintf(&b, `{"timestamp":"2026-11-01T10:00:00.000Z","type":%q,"payload":%s}`+"\n", typ, payload)
	}
	line("session_meta", `{"id":"s","cwd":"/w"}`)
	line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}`)
	count := func(primary, secondary string) {
		line("event_msg", `{"type":"token_count","info":null,"rate_limits":{"primary":`+primary+`,"secondary":`+secondary+`}}`)
	}
	five := func(used string, resets int) string {
		return fmt.Sprintf(`{"used_percent":%s,"window_minutes":300,"resets_at":%d}`, used, resets)
	}
	count(five("14.0", 1000000), "null")
	count(five("17.5", 1000001), `{"used_percent":3,"window_minutes":10080,"resets_at":2000000}`)
	count(five("16", 1000000), `{"used_percent":"many","window_minutes":10080,"resets_at":2000000}`) // of an earlier response
	count(five("18", 1000000), `{"used_percent":1e9,"window_minutes":10080,"resets_at":2000000}`)
	count(five("2", 1018000), `7`)
	count(five("90", 1000000), `{"used_percent":4,"window_minutes":0,"resets_at":2000000}`)
	count(five("5", 1018000), `{"used_percent":5,"window_minutes":10080,"resets_at":2000000}`)
	rec, err := Read("rollout", strings.NewReader(b.String()))
	if err != nil || len(rec.Sessions) != 1 {
		t.Fatal(rec, err)
	}
	var got []PlanLimit
	for _, l := range rec.Sessions[0].PlanLimits {
		got = append(got, PlanLimit{Minutes: l.Minutes, Rise: l.Rise, Steps: l.Steps})
	}
	if want := []PlanLimit{{Minutes: 300, Rise: 4 + 5, Steps: 2}, {Minutes: 10080, Rise: 2, Steps: 1}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
