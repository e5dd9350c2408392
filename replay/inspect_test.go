package replay

import (
	"fmt"
	"strings"
	"testing"
)

// An inspection has one request as a policy would have sent it, and the log.
func TestInspect(t *testing.T) {
	b := ledger(t, "toy")
	mask := script{3: hide(2, "[gone]", 20)}
	o := Options{Catalog: toyCatalog(t)}
	for _, tt := range []struct {
		at, number int
		shown      []string // the first word of each message
		size       int      // before the plan
		records    string   // of the recording, by record of the log
	}{
		{1, 1, []string{"word"}, 200, "[0 1]"},
		{2, 2, []string{"word", `{"path":"src"}`, "word"}, 445, "[0 1 2 3 4]"},
		// The mask is the policy's own record.
		{3, 3, []string{"word", `{"path":"src"}`, "[gone]", `{"path":"lib"}`, "word"}, 690, "[0 1 2 3 4 5 6 7 0]"},
		{0, 4, []string{"word", `{"path":"src"}`, "[gone]", `{"path":"lib"}`, "word", "word", "word"}, 695, "[0 1 2 3 4 5 6 7 0 8 9 10]"},
	} {
		got, err := Inspect(t.Context(), b.s, mask.candidate("mask"), 5000, tt.at, o)
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for i := range got.View.Messages {
			word, _, _ := strings.Cut(got.View.Messages[i].Blocks[0].Words(), " ")
			shown = append(shown, word)
		}
		if fmt.Sprint(shown) != fmt.Sprint(tt.shown) {
			t.Errorf("request %d shows %v, want %v", tt.at, shown, tt.shown)
		}
		if got.Number != tt.number || got.Requests != 4 || got.Budget.Window != 5000 || got.Budget.Size != tt.size {
			t.Errorf("request %d: number %d of %d, window %d, size %d, want %d", tt.at, got.Number, got.Requests, got.Budget.Window, got.Budget.Size, tt.size)
		}
		if fmt.Sprint(got.Recorded) != tt.records || len(got.Recorded) != got.Log.Len()+1 {
			t.Errorf("request %d: records %v, want %s", tt.at, got.Recorded, tt.records)
		}
		if got.Plan == nil {
			t.Errorf("request %d: no plan", tt.at)
		}
	}
	for _, at := range []int{-1, 5} {
		if got, err := Inspect(t.Context(), b.s, mask.candidate("mask"), 0, at, o); err == nil || got != nil {
			t.Errorf("request %d of 4: %v, %v", at, got, err)
		}
	}
}
