package cli

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/replay"
)

func TestProgressLine(t *testing.T) {
	for _, tt := range []struct {
		p    replay.Progress
		want string
	}{
		{replay.Progress{File: "d/a.jsonl"}, "reading file 1, a.jsonl"},
		{replay.Progress{File: "d/a\n.jsonl", Files: 2, Done: 9, Total: 9}, strings.Repeat("█", 20) + " 9 of 9 runs of file 3, a␊.jsonl"},
		{replay.Progress{File: "b", Done: 1, Total: 4}, strings.Repeat("█", 5) + strings.Repeat("░", 15) + " 1 of 4 runs of file 1, b"},
	} {
		if got := progressLine(tt.p); got != tt.want {
			t.Errorf("progressLine(%+v) = %q, want %q", tt.p, got, tt.want)
		}
	}
}
