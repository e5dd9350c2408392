package clienttest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire/anthropic"
)

// unrecorded are the fields that Claude Code sends and does not record.
var unrecorded = []string{"metadata", "stream"}

// billingBlock begins a system block that Claude Code does not record.
const billingBlock = `{"type":"text","text":"x-anthropic-billing-header:`

// recordable returns a body without what Claude Code does not record.
func recordable(body []byte) []byte {
	for _, name := range unrecorded {
		body = rawjson.Splice(body, rawjson.DropField(body, name))
	}
	system := rawjson.Elements(rawjson.Field(body, "system"))
	if len(system) > 0 && bytes.HasPrefix(system[0], []byte(billingBlock)) {
		body = rawjson.WithField(body, "system", append(append([]byte("["), bytes.Join(system[1:], []byte(","))...), ']'))
	}
	return body
}

// size counts the tokens of instructions and of the tools that are in the prompt.
func size(preamble []furl.Block) (tokens int) {
	m := furl.Message{Blocks: slices.DeleteFunc(slices.Clone(preamble), func(b furl.Block) bool { return b.Deferred })}
	m.Measure(token.O200k())
	return m.Tokens()
}

// What Claude Code records of its requests is what the gateway got: byte for byte, with a
// sub-agent, its own compaction and two resumptions.
func TestClaudeRecordsItsRequests(t *testing.T) {
	t.Parallel()
	c := coders[0]
	program := c.program(t)
	st := newFixtureOf(t, 200_000, func(string) sim.Player { return &besides{} })
	for _, args := range [][]string{{"-p", "Ask somebody."}, {"-c", "-p", "Go on."}, {"-c", "-p", "/compact"}, {"-c", "-p", "Go on."}} {
		st.run(t, c.env(st), program[0], claude(args...)...)
	}
	got := make(map[string][]byte) // by the id of the response
	for _, s := range st.sessions(t) {
		for _, r := range s.Records(0) {
			if ex, ok := r.Body.(*furl.Exchange); ok {
				body, err := s.ReceivedBody(t.Context(), r.Seq)
				if err != nil {
					t.Fatal(err)
				}
				got[ex.ResponseID] = body
			}
		}
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(st.home, ".claude", "projects"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		files++
		rec, err := (&transcript.Reader{Bodies: true}).ReadFile(path)
		if err != nil {
			return err
		}
		if len(rec.Notes)+len(rec.Skipped) > 0 {
			t.Errorf("%s: %v %v", filepath.Base(path), rec.Notes, rec.Skipped)
		}
		for _, s := range rec.Sessions {
			compareRequests(t, s, got)
		}
		return nil
	})
	if err != nil || files != 2 {
		t.Errorf("%d files, want the session's and its sub-agent's: %v", files, err)
	}
	// The request for the summary of a compaction is not recorded.
	for id, body := range got {
		if !bytes.Contains(body, []byte("TEXT ONLY")) {
			t.Errorf("the request of %s is not in the files: %.300s", id, body)
		}
	}
}

// compareRequests compares the requests of a session with those that the gateway got, and removes
// them there.
func compareRequests(t *testing.T, s *transcript.Session, got map[string][]byte) {
	t.Helper()
	for _, r := range s.Log.Records(0) {
		ex, ok := r.Body.(*furl.Exchange)
		if !ok {
			continue
		}
		body, err := rebuild.Body(s.Log.Records(0), r.Seq, false, rebuild.ByDigest(s.Contents))
		if err != nil {
			t.Errorf("record %d of %s: %v", r.Seq, s.ID, err)
			continue
		}
		want := recordable(got[ex.ResponseID])
		if !bytes.Equal(body, want) {
			t.Errorf("record %d of %s: the file has\n%s\nthe gateway got\n%s", r.Seq, s.ID, around(body, want), around(want, body))
		}
		req, err := anthropic.Codec.DecodeRequest(got[ex.ResponseID])
		if err != nil {
			t.Fatal(err)
		}
		if mine, theirs := size(s.Preamble), size(req.Preamble); 100*max(mine-theirs, theirs-mine) > theirs {
			t.Errorf("record %d of %s: instructions and tools of %d tokens, sent were %d", r.Seq, s.ID, mine, theirs)
		} else if r.Seq < 4 {
			t.Logf("instructions and tools of %d tokens, sent were %d", mine, theirs)
		}
		delete(got, ex.ResponseID)
	}
}

// around returns what is in a at its first difference from b.
func around(a, b []byte) []byte {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[max(n-100, 0):min(n+300, len(a))]
}
