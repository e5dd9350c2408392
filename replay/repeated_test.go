package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// A request that is counted in another session adds nothing, but the cache and the policy know it: what
// follows costs the same as after requests that count.
func TestRepeatedRequests(t *testing.T) {
	var b strings.Builder
	for i := range 12 {
		at := fmt.Sprintf("2026-09-10T10:%02d:00.000Z", i)
		fmt.Fprintf(&b, `{"parentUuid":%s,"sessionId":"s","type":"user","uuid":"u%d","timestamp":%q,"cwd":"/p","version":"2.1.150","message":{"role":"user","content":%q}}`+"\n",
			map[bool]string{true: "null", false: fmt.Sprintf(`"a%d"`, i-1)}[i == 0], i, at, strings.Repeat(fmt.Sprintf("line %d of the task\n", i), 300))
		fmt.Fprintf(&b, `{"parentUuid":"u%[1]d","sessionId":"s","type":"assistant","uuid":"a%[1]d","timestamp":%[2]q,"message":{"id":"msg_%[1]d","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"Done %[1]d."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_creation_input_tokens":2000,"cache_read_input_tokens":%[3]d,"output_tokens":20}}}`+"\n", i, at, 2000*i)
	}
	read := func(repeated func(request int) bool) *transcript.Recording {
		rec, err := transcript.Read("s.jsonl", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		s := rec.Sessions[0]
		s.Repeated = make(map[furl.Seq]bool)
		n := 0
		for seq := range s.Replies() {
			if n++; repeated(n) {
				s.Repeated[seq] = true
			}
		}
		return rec
	}
	candidates, err := Candidates(nil, "none", "clear-100k")
	if err != nil {
		t.Fatal(err)
	}
	run := func(recs ...*transcript.Recording) *Report {
		r, err := Run(t.Context(), slices.Values(recs), Options{Candidates: candidates})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	none := func(int) bool { return false }
	all, start, end := run(read(none)), run(read(func(n int) bool { return n > 8 })), run(read(func(n int) bool { return n <= 8 }))
	for i := range all.Totals {
		whole, first, last := &all.Totals[i], &start.Totals[i], &end.Totals[i]
		if whole.Requests != 12 || first.Requests != 8 || last.Requests != 4 || last.TokensSent != whole.TokensSent-first.TokensSent {
			t.Errorf("%s: %d = %d + %d requests, %d = %d + %d tokens", whole.Policy, whole.Requests, first.Requests, last.Requests, whole.TokensSent, first.TokensSent, last.TokensSent)
		}
		if d := *whole.Cost - *first.Cost - *last.Cost; math.Abs(d) > 1e-9 || *last.Cost <= 0 {
			t.Errorf("%s: $%g are not $%g + $%g", whole.Policy, *whole.Cost, *first.Cost, *last.Cost)
		}
	}
	if r := end.Recordings[0]; r.Requests != 4 || end.Repeated != 8 || !slices.Contains(end.Notes, "8 requests repeat those of another session and are counted there.") {
		t.Errorf("%d requests, %d repeated, notes %q", r.Requests, end.Repeated, end.Notes)
	}
	// A copy is not a recording of its own.
	if r := run(read(none), read(func(int) bool { return true })); len(r.Recordings) != 1 || r.Repeated != 12 || r.Totals[0].Requests != 12 {
		t.Errorf("with a copy: %d recordings, %d requests, %d repeated", len(r.Recordings), r.Totals[0].Requests, r.Repeated)
	}
}
