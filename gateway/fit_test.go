package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/fit"
	"github.com/furlhq/furl/internal/recordings"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/transcript"
)

// fitting fits the requests of a client as a program does that sends them itself: each call
// in another process, with the usage of the last reply.
type fitting struct {
	t     *testing.T
	st    *judgeStand
	store *inmem.Store
	usage json.RawMessage
	// same counts the requests whose body is that of the gateway, changed those in which it
	// is not the client's.
	requests, same, changed int
}

func (f *fitting) compare(asked []byte, got [][]byte, reply []byte) {
	if len(got) != 1 {
		f.t.Fatalf("the provider got %d requests", len(got))
	}
	o := f.st.options
	now := f.st.now
	o.Now = nil // furl fit gets the time with the request
	all, err := session.New(f.store, &o)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := fit.Fit(f.t.Context(), all, &fit.Request{Body: asked, Format: f.st.client.Format, Usage: f.usage, Time: now, Session: "s1"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.requests++
	if !bytes.Equal(r.Body, asked) {
		f.changed++
	}
	if bytes.Equal(r.Body, got[0]) {
		f.same++
	} else if f.requests-f.same == 1 {
		f.t.Errorf("request %d differs from that of the gateway: %s", f.requests, firstDifference(r.Body, got[0]))
	}
	var fields struct{ Usage json.RawMessage }
	if err := json.Unmarshal(reply, &fields); err != nil {
		f.t.Fatal(err)
	}
	f.usage = fields.Usage
}

// firstDifference shows where two texts differ.
func firstDifference(a, b []byte) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-80)
	return fmt.Sprintf("%d and %d bytes; at %d: %q and %q", len(a), len(b), n, a[from:min(len(a), n+120)], b[from:min(len(b), n+120)])
}

// A program that fits its requests with a session sends what the gateway sends in their place,
// byte for byte, with every preset and in all formats. (Summaries by a model are the exception:
// the gateway asks for them after a reply, which only it sees.) FURL_MARKS=1 sends 100 requests of all
// recordings with all presets.
func TestFitEqualsGateway(t *testing.T) {
	all := os.Getenv("FURL_MARKS") != ""
	files, presets, most := recordings.Files(t, "entire-cli/6d-*.gz", "agentv/*.codex.jsonl.gz", "pi-mono/*.gz")[:3], policy.NewSet().Names(), 45
	if all {
		files, most = recordings.Files(t, "*/*.gz"), 100
	}
	requests, changed := 0, 0
	for i, file := range files {
		rec, err := transcript.ReadFile(file)
		if err != nil || len(rec.Sessions) == 0 {
			continue // not an agent's
		}
		s := rec.Sessions[0]
		ways := []string{"claude", "codex", "pi-chat"}
		if !all {
			ways = ways[i%3:][:1]
		}
		for _, client := range ways {
			for j, name := range presets {
				if !all && j%3 != i || gateway.RaceDetector && j > 3 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", filepath.Base(file), client, name), func(t *testing.T) {
					st := newJudge(t, s, followed{client: client, window: 24_000, policy: name}, 10_000_000)
					f := &fitting{t: t, st: st, store: inmem.New()}
					st.compare, st.noSummaries = f.compare, true
					st.start(t)
					if st.follow(t, s, followed{client: client}, most); st.err != nil {
						t.Log(st.err) // at a recorded compaction
					}
					t.Logf("%d requests, %d of them changed", f.requests, f.changed)
					requests, changed = requests+f.requests, changed+f.changed
				})
			}
		}
	}
	if t.Logf("%d requests, %d of them changed", requests, changed); changed == 0 {
		t.Error("no request was changed")
	}
}
