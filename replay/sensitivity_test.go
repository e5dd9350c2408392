package replay

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/transcript"
)

// TestCacheSensitivity reports how much the bill depends on what is not known about
// the provider's cache, or not certain: furl's own breakpoint, whether reading an
// entry renews those that it contains, and the lifetime that the client requested.
// In each case auto must cost less than doing nothing, and entries of one hour for
// instructions and tools no more than the same policy without them.
//
//	FURL_MARKS=1 FURL_RECORDINGS=folder go test ./replay -run TestCacheSensitivity -v
func TestCacheSensitivity(t *testing.T) {
	files := recordings.Files(t, withUsage...)
	if os.Getenv("FURL_MARKS") == "" {
		t.Log("only two recordings; with FURL_MARKS=1 all")
		files = recordings.Files(t, "entire-cli/37-*.jsonl.gz", "nimbus/*.gz")
	}
	read, write := 0.1, 1.25
	lower := []string{"auto", "auto:frugal", "auto:faithful"}
	for _, tt := range []struct {
		name string
		o    Options
	}{
		{"as simulated", Options{}},
		{"without furl's breakpoint", Options{noMark: true}},
		{"reads renew one entry", Options{renewOne: true}},
		{"both", Options{noMark: true, renewOne: true}},
		{"all entries five minutes", Options{CacheLifetime: 5 * time.Minute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.o
			o.Candidates = presets(t, none, "rolling-mask-10", "rolling-mask-5", "auto:frugal", "auto", "auto:faithful")
			o.CacheRead, o.CacheWrite, o.HourCache = &read, &write, protocol.HourAlways
			rep, err := Run(t.Context(), func(yield func(*transcript.Recording) bool) {
				for _, file := range files {
					rec, err := transcript.ReadFile(file)
					if err != nil {
						t.Error(err)
						return
					}
					if !yield(rec) {
						return
					}
				}
			}, o)
			if err != nil {
				t.Fatal(err)
			}
			base := rep.Totals[0].Split.Input()
			plain := make(map[string]float64) // by policy, without entries of one hour
			for i := range rep.Totals {
				r := &rep.Totals[i]
				ratio := r.Split.Input() / base
				t.Logf("%-16s $%7.2f  %.3f", r.Policy, r.Split.Input(), ratio)
				if slices.Contains(lower, r.Policy) && ratio >= 1 {
					t.Errorf("%s costs %.3f of doing nothing", r.Policy, ratio)
				}
				policy, longer := BasePolicy(r.Policy)
				if longer == "" {
					plain[policy] = ratio
				} else if ratio > plain[policy] {
					t.Errorf("%s costs %.4f, without entries of one hour %.4f", r.Policy, ratio, plain[policy])
				}
			}
		})
	}
}
