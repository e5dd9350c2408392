package demo

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/furlhq/furl/replay"
	tokens "github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire/anthropic"
)

// session is the generated session, for tests that only read it.
var session = sync.OnceValue(func() *transcript.Session { return Recording().Sessions[0] })

func TestRecordingIsTheSameEveryTime(t *testing.T) {
	a, b := Recording().Sessions[0], session()
	if a.Log.Len() != b.Log.Len() {
		t.Fatalf("%d records, then %d", a.Log.Len(), b.Log.Len())
	}
	for seq := furl.Seq(1); int(seq) <= a.Log.Len(); seq++ {
		x, y := a.Log.At(seq), b.Log.At(seq)
		if !x.At.Equal(y.At) {
			t.Fatalf("record %d: at %v, then %v", seq, x.At, y.At)
		}
		m, ok := x.Body.(*furl.Message)
		if ok && !bytes.Equal(m.Raw, y.Body.(*furl.Message).Raw) {
			t.Fatalf("record %d differs:\n%s\n%s", seq, m.Raw, y.Body.(*furl.Message).Raw)
		}
	}
}

// The session should look like one of an agent: long, but within its model's
// window, with pauses in which a prompt cache grows cold.
func TestShape(t *testing.T) {
	begin := time.Now()
	rec := Recording()
	took := time.Since(begin)
	if took > 5*time.Second { // 40 ms, without other load and race detector
		t.Errorf("took %v to generate", took)
	}
	s := rec.Sessions[0]
	model, ok := catalog.Default().Lookup(s.Model)
	if !ok {
		t.Fatalf("model %s is not in the catalogue", s.Model)
	}
	counter := tokens.O200k()
	size, requests, pauses, quick := 0, 0, 0, 0
	var last time.Time
	for seq := furl.Seq(1); int(seq) <= s.Log.Len(); seq++ {
		r := s.Log.At(seq)
		switch b := r.Body.(type) {
		case *furl.Message:
			b.Measure(counter)
			size += b.Tokens()
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
		t.Errorf("%d pauses longer than a cache lives, %d of %d requests within a minute", pauses, quick, requests)
	}
}

// Every request is one the provider takes, and every call has its result.
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
			req := furl.Request{Format: s.Wire, Model: s.Model, Messages: sent, Preamble: s.Preamble}
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

var lineNumber = regexp.MustCompile(`(?m)^ *\d+→`)

// What an edit replaces stands in the newest read of the file, or in what an
// edit or a write has shown of it since.
func TestEditsQuoteTheNewestRead(t *testing.T) {
	s := session()
	shown := make(map[string]string)
	names := make(map[string]string) // of calls, by id
	files := make(map[string]string)
	edits, reads := 0, 0
	for seq := furl.Seq(1); int(seq) <= s.Log.Len(); seq++ {
		m, ok := s.Log.At(seq).Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			b := &m.Blocks[i]
			switch b.Kind {
			case furl.KindCall:
				var args struct {
					Path    string `json:"file_path"`
					Old     string `json:"old_string"`
					New     string `json:"new_string"`
					Content string
				}
				if err := json.Unmarshal(b.Args, &args); err != nil {
					t.Fatal(err)
				}
				names[b.ID], files[b.ID] = b.Name, args.Path
				switch b.Name {
				case "Edit":
					edits++
					if !strings.Contains(shown[args.Path], args.Old) {
						t.Errorf("record %d: %s does not show\n%s", seq, args.Path, args.Old)
					}
					shown[args.Path] = strings.Replace(shown[args.Path], args.Old, args.New, 1)
				case "Write":
					shown[args.Path] = args.Content
				}
			case furl.KindResult:
				if names[b.ID] == "Read" {
					reads++
					shown[files[b.ID]] = lineNumber.ReplaceAllString(b.Text, "")
				}
			}
		}
	}
	if edits < 50 || reads < 50 {
		t.Errorf("%d edits, %d reads", edits, reads)
	}
}

// The files are Go before the session and after it.
func TestProjectParses(t *testing.T) {
	p := newProject(7)
	parse := func(when string) {
		for _, path := range p.paths("") {
			if !strings.HasSuffix(path, ".go") {
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), path, p.files[path], parser.AllErrors); err != nil {
				t.Errorf("%s the session: %v", when, err)
			}
		}
	}
	parse("before")
	newAgent(7, p).afternoon()
	parse("after")
}

// A session on which all policies do alike would show nothing.
func TestPoliciesDiffer(t *testing.T) {
	candidates, err := replay.Presets("none", "rolling-mask-10", "clear-100k")
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
