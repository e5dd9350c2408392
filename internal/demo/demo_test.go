package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/replay"
	tokens "github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire/anthropic"
)

// session is the recorded session, for tests that only read it.
var session = sync.OnceValue(func() *transcript.Session { return Recording().Sessions[0] })

// What a caller changes in one recording is not in the next one.
func TestRecordingIsNewEachTime(t *testing.T) {
	one := Recording()
	one.Notes[0] = "changed"
	m := one.Sessions[0].Log.At(1).Body.(*furl.Message)
	m.Blocks[0].Text = "changed"
	clear(m.Raw)
	two := Recording()
	m = two.Sessions[0].Log.At(1).Body.(*furl.Message)
	if two.Notes[0] == "changed" || m.Blocks[0].Text == "changed" || !bytes.HasPrefix(m.Raw, []byte("{")) {
		t.Errorf("the second recording has the changes of the first: %q, %+v", two.Notes, m)
	}
}

// The file is read without remarks, and is one session.
func TestFile(t *testing.T) {
	rec, err := transcript.Read("session.jsonl.gz", bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Format != "furl" || len(rec.Sessions) != 1 || len(rec.Skipped) > 0 || len(rec.Notes) > 0 {
		t.Errorf("format %s, %d sessions, skipped %v, notes %q", rec.Format, len(rec.Sessions), rec.Skipped, rec.Notes)
	}
}

// The session has the shape of an agent's: long, but within the context window
// of its model, with pauses after which the prompt cache has expired.
func TestShape(t *testing.T) {
	s := session()
	model, ok := catalog.Default().Lookup(s.Model)
	if !ok {
		t.Fatalf("model %s is not in the catalogue", s.Model)
	}
	if s.Model != Model {
		t.Errorf("the session is of model %s, Model says %s", s.Model, Model)
	}
	counter := tokens.O200k()
	size, requests, pauses, quick := 0, 0, 0, 0
	var last time.Time
	for seq := furl.Seq(1); int(seq) <= s.Log.Len(); seq++ {
		r := s.Log.At(seq)
		switch b := r.Body.(type) {
		case *furl.Message:
			m := *b
			m.Blocks = slices.Clone(b.Blocks)
			m.Measure(counter)
			size += m.Tokens()
		case *furl.Exchange:
			gap := r.At.Sub(last)
			if requests++; requests > 1 && gap > model.Caching.Lifetime {
				pauses++
			} else if gap < time.Minute {
				quick++
			}
			last = r.At
		}
	}
	if requests < 150 || requests > 250 {
		t.Errorf("%d requests", requests)
	}
	if size < 120_000 || size > 155_000 {
		t.Errorf("%d tokens", size)
	}
	if pauses < 3 || quick < requests*8/10 {
		t.Errorf("%d pauses longer than the lifetime of the cache, %d of %d requests within a minute", pauses, quick, requests)
	}
}

// The provider accepts every request, and every call has its result.
func TestRequestsAreValid(t *testing.T) {
	s := session()
	model, _ := catalog.Default().Lookup(s.Model)
	var sent []furl.Message
	calls, results := 0, 0
	for seq := furl.Seq(1); int(seq) <= s.Log.Len(); seq++ {
		switch b := s.Log.At(seq).Body.(type) {
		case *furl.Message:
			sent = append(sent, *b)
			for i := range b.Blocks {
				switch b.Blocks[i].Kind {
				case furl.KindCall:
					calls++
				case furl.KindResult:
					results++
				}
			}
		case *furl.Exchange:
			req := protocol.Request{Format: s.Wire, Model: s.Model, Messages: sent, Preamble: s.Preamble}
			if err := anthropic.Codec.Validate(&req, model); err != nil {
				t.Fatalf("record %d: %v", seq, err)
			}
		}
	}
	if calls != s.Calls || results != s.Results || calls != results {
		t.Errorf("%d calls and %d results, the session says %d and %d", calls, results, s.Calls, s.Results)
	}
	if len(sent) != s.Messages {
		t.Errorf("%d messages, the session says %d", len(sent), s.Messages)
	}
}

// eachCall calls do with each tool call in order: its name, its arguments, and
// the text of its result.
func eachCall(t *testing.T, s *transcript.Session, do func(seq furl.Seq, name string, args arguments, result string)) {
	t.Helper()
	calls := make(map[string]furl.Block)
	for seq := furl.Seq(1); int(seq) <= s.Log.Len(); seq++ {
		m, ok := s.Log.At(seq).Body.(*furl.Message)
		if !ok {
			continue
		}
		for _, b := range m.Blocks {
			switch b.Kind {
			case furl.KindCall:
				calls[b.ID] = b
			case furl.KindResult:
				var args arguments
				if err := json.Unmarshal(calls[b.ID].Args, &args); err != nil {
					t.Fatal(err)
				}
				do(seq, calls[b.ID].Name, args, b.Text)
			}
		}
	}
}

// arguments are those of the tools that read and change files.
type arguments struct {
	Path    string `json:"file_path"`
	Offset  int
	Old     string `json:"old_string"`
	New     string `json:"new_string"`
	Content string
}

var lineNumber = regexp.MustCompile(`(?m)^ *\d+→`)

// The text that an edit replaces is in the newest read of the file, or in what
// an edit or a write has put there since.
func TestEditsQuoteTheNewestRead(t *testing.T) {
	shown := make(map[string]string)
	edits, reads := 0, 0
	eachCall(t, session(), func(seq furl.Seq, name string, args arguments, result string) {
		switch name {
		case "Edit":
			edits++
			if !strings.Contains(shown[args.Path], args.Old) {
				t.Errorf("record %d: %s does not show\n%s", seq, args.Path, args.Old)
			}
			shown[args.Path] = strings.Replace(shown[args.Path], args.Old, args.New, 1)
		case "Write":
			shown[args.Path] = args.Content
		case "Read":
			reads++
			shown[args.Path] = lineNumber.ReplaceAllString(result, "")
		}
	})
	if edits < 50 || reads < 50 {
		t.Errorf("%d edits, %d reads", edits, reads)
	}
}

// The files are Go when the agent first reads them and after its last edit.
func TestProjectParses(t *testing.T) {
	files := make(map[string]string) // as last read or written in full, and edited since
	parsed := 0
	parse := func(when, path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		parsed++
		if _, err := parser.ParseFile(token.NewFileSet(), path, files[path], parser.AllErrors); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	eachCall(t, session(), func(seq furl.Seq, name string, args arguments, result string) {
		path := args.Path
		switch {
		case name == "Read" && args.Offset == 0:
			files[path] = lineNumber.ReplaceAllString(result, "")
			parse(fmt.Sprintf("record %d", seq), path)
		case name == "Write":
			files[path] = args.Content
			parse(fmt.Sprintf("record %d", seq), path)
		case name == "Edit" && files[path] != "":
			files[path] = strings.Replace(files[path], args.Old, args.New, 1)
		}
	})
	for path := range files {
		parse("after the session", path)
	}
	if parsed < 50 {
		t.Errorf("%d files parsed", parsed)
	}
}

// A session on which all policies have the same effect would show nothing.
func TestPoliciesDiffer(t *testing.T) {
	candidates, err := replay.Candidates(nil, "none", "rolling-mask-10", "clear-100k")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replay.Run(context.Background(), slices.Values([]*transcript.Recording{Recording()}), replay.Options{Candidates: candidates})
	if err != nil {
		t.Fatal(err)
	}
	none := rep.Totals[0]
	if none.Cost == nil || none.Overflows > 0 || none.References < 100 || none.OwnReferences < 100 || none.QuotedLines < 100 {
		t.Errorf("policy none: %+v", none)
	}
	for _, r := range rep.Totals[1:] {
		if r.Reductions == 0 || r.TokensSent >= none.TokensSent {
			t.Errorf("%s: %d reductions, sent %d tokens of %d", r.Policy, r.Reductions, r.TokensSent, none.TokensSent)
		}
		if r.InvalidRequests > 0 {
			t.Errorf("%s: %d requests refused: %s", r.Policy, r.InvalidRequests, r.FirstRefusal)
		}
	}
	if masked := rep.Totals[1]; masked.ReferencesKept == masked.References || masked.QuotedLinesKept == masked.QuotedLines {
		t.Errorf("rolling-mask-10 loses nothing: %+v", masked)
	}
}

func BenchmarkRecording(b *testing.B) {
	for b.Loop() {
		Recording()
	}
}
