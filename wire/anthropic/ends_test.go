package anthropic

import "testing"

func TestAsksCompaction(t *testing.T) {
	for body, want := range map[string]bool{
		`{"messages":[],"compaction":{"type":"summarize"}}`: true,
		`{"messages":[],"compaction":null}`:                 false,
		`{"messages":[]}`:                                   false,
	} {
		if got := Codec.AsksCompaction(decode(t, body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}
