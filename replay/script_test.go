package replay

import (
	"testing"

	"github.com/furlhq/furl/transcript"
)

// In Codex's code mode the calls are in scripts. The first patch is an edit; the second one
// replaces a line that was never there; the text of the third one is computed.
func TestScripts(t *testing.T) {
	rec, err := transcript.ReadFile("../transcript/testdata/codex-code-mode.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rep := replayAll(t, Options{}, rec)
	for i := range rep.Totals {
		r := &rep.Totals[i]
		if r.Edits != 1 || r.EditsNotMeasured != 1 || r.QuotedLines != 2 || r.References == 0 {
			t.Errorf("%s: %d edits, not measured in %d requests, %d quoted lines, %d references", r.Policy, r.Edits, r.EditsNotMeasured, r.QuotedLines, r.References)
		}
	}
}
