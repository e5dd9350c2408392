package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// A replay repairs a failed edit as the gateway does: the next request has the file that the
// policy has hidden, and later ones too.
func TestRepairedEdit(t *testing.T) {
	set := policy.NewSet()
	if err := set.Configure("rolling-mask-5", []byte(`{"repair_edits": true}`)); err != nil {
		t.Fatal(err)
	}
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user("go")
	requests := 0
	step := func(tool, args, result string) {
		requests++
		id := fmt.Sprint("call", requests)
		b.asks(fmt.Sprintf("%dm", requests), furl.Usage{})
		b.calls(id, tool, args)
		b.result(id, result)
	}
	var file strings.Builder
	for i := range 50 {
		fmt.Fprintf(&file, "%d\tthe text of the file, in its line %d\n", i, i)
	}
	step("Read", `{"file_path":"/a.go"}`, file.String())
	for i := range 7 {
		step("Bash", fmt.Sprintf(`{"command":"make test%d"}`, i), words(100))
	}
	step("Edit", `{"file_path":"/a.go","old_string":"the text of the file, in line 7"}`, "String to replace not found in file.")
	step("Bash", `{"command":"git status"}`, "clean")
	b.asks("20m", furl.Usage{})
	b.says("Done.")
	for _, tt := range []struct {
		set     *policy.Set
		request int
		visible bool
	}{{set, requests - 1, false}, {set, requests, true}, {set, requests + 1, true}, {nil, requests, false}} {
		candidates, err := Candidates(tt.set, "rolling-mask-5")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Inspect(t.Context(), b.s, candidates[0], 0, tt.request, Options{Catalog: toyCatalog(t)})
		if err != nil {
			t.Fatal(err)
		}
		if visible := got.View.Messages[2].AsRecorded(); visible != tt.visible {
			t.Errorf("request %d, repairs %v: the file is visible: %v", tt.request, tt.set != nil, visible)
		}
		if len(got.Recorded) != got.Log.Len()+1 {
			t.Errorf("request %d: %d records for %d", tt.request, len(got.Recorded)-1, got.Log.Len())
		}
	}
}
