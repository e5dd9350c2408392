package transcript_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/transcript"
)

// vocabulary are the words of five letters and more in the structure of any session: what the
// page itself says, and the names of built-in tools.
var vocabulary = strings.Fields(`
	structure session roles kinds sizes times since start texts titles names paths dates
	context compacted message messages archived token tokens freed reduced block blocks hidden record records undone
	assistant developer system other result results calls thinking image document observation failed instructions definition
	visible reductions requests largest prompt cache written uncached input output duration model these
	summaries placeholders dotted lines taken branch place again expanded preferred pinned unpinned
	askuserquestion bashoutput exitplanmode enterplanmode multiedit notebookedit todowrite websearch webfetch write skill taskoutput killshell killbash slashcommand taskcreate taskupdate taskget tasklist taskstop toolsearch notebookread
	shell command apply patch update search stdin report intent create replace content directory google memory spawn agent shell local webfetch think
`)

// outside are the words of five letters and more in the page's markup.
var outside = strings.Fields(`
	doctype charset equiv security policy default style sha256 action width device initial scale viewport referrer generator title
	header section class ribbon height hidden pattern patternunits userspaceonuse patterntransform rotate hatch curve viewbox preserveaspectratio
	polyline points small article dimmed marker lifted figures preamble tabindex label lines opaque
`)

var wordPattern = regexp.MustCompile(`\p{L}{5,}`)

// The structure of a real session has no word of it, apart from words that every structure
// has.
func TestStructureOfRecordings(t *testing.T) {
	for _, file := range recordings.Files(t, "entire-cli/bc-*.gz", "entire-cli/1*.gz", "entire-cli/*.json", "agentv/1f-*.gz", "agentv/26-*.gz", "nimbus/*.json.gz", "aider/*.gz") {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			continue // not a recording
		}
		for _, s := range rec.Sessions {
			for _, view := range []bool{false, true} {
				var page bytes.Buffer
				if _, err := transcript.Export(t.Context(), &page, "html", s, &transcript.ExportOptions{Structure: true, View: view}); err != nil {
					t.Fatal(err)
				}
				expectStructure(t, s, page.Bytes())
			}
		}
	}
}

func expectStructure(t *testing.T, s *transcript.Session, page []byte) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode && n.Parent.Data == "style":
		case n.Type == html.TextNode:
			for _, word := range wordPattern.FindAllString(n.Data, -1) {
				if !slices.Contains(vocabulary, strings.ToLower(word)) {
					t.Fatalf("the structure of %s says %q in %q", s.ID, word, n.Data)
				}
			}
		case n.Type == html.ElementNode && n.Data != "meta":
			for _, a := range n.Attr {
				for _, word := range wordPattern.FindAllString(a.Val, -1) {
					if word := strings.ToLower(word); !slices.Contains(outside, word) && !slices.Contains(vocabulary, word) && word != "placeholder" && word != "summary" {
						t.Fatalf("the structure of %s has the attribute %s=%q", s.ID, a.Key, a.Val)
					}
				}
			}
		}
	}
	text := string(page[bytes.Index(page, []byte("</style>")):])
	project := s.Project[strings.LastIndexAny(s.Project, `/\`)+1:]
	for what, secret := range map[string]string{"session id": s.ID, "title": s.Title, "project": project, "model": s.Model} {
		if len(secret) >= 5 && strings.Contains(text, secret) {
			t.Errorf("the structure has the %s %q", what, secret)
		}
	}
}

// Hostile names of tools, roles and stages are not in a structure, and other formats have
// none.
func TestStructureOfNames(t *testing.T) {
	log := furl.NewLog()
	for _, body := range []furl.Body{
		&furl.Message{Role: "confidential", Blocks: []furl.Block{{Kind: furl.KindText, Text: "confidential", Tokens: 4}}},
		&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: "confidential", Name: "confidential", Args: []byte(`{"confidential":1}`)}, {Kind: furl.KindCall, ID: "2", Name: "Read", Args: []byte(`{}`)}}},
		&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "confidential", Text: "confidential"}, {Kind: furl.KindResult, ID: "2", Text: "confidential", Error: true}}},
		&furl.Reduction{Stage: "confidential", Reason: "confidential", Before: 100, After: 40, Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: 3}, Last: furl.Pos{Msg: 3}}}, Show: furl.In{Text: "confidential", Tokens: 3}}}},
	} {
		if _, err := log.Append(log.Head(), time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC), furl.Client, body); err != nil {
			t.Fatal(err)
		}
	}
	s := &transcript.Session{
		ID: "confidential", Title: "confidential", Model: "confidential", Project: "/confidential", Wire: furl.FormatAnthropic, Log: log,
		Preamble: []furl.Block{{Kind: furl.KindText, Text: "confidential", Tokens: 7}, {Kind: furl.KindOpaque, Name: "confidential", Text: "confidential"}},
	}
	for _, view := range []bool{false, true} {
		var page bytes.Buffer
		if _, err := transcript.Export(t.Context(), &page, "html", s, &transcript.ExportOptions{Structure: true, View: view}); err != nil {
			t.Fatal(err)
		}
		if text := page.String(); strings.Contains(text, "confidential") || strings.Contains(text, "2026") {
			t.Errorf("view %t: the structure has a name or a date:\n%s", view, text[strings.Index(text, "</style>"):])
		}
		for _, want := range []string{"call of tool", "call of Read", "result of Read, failed", "instructions, 7 tokens"} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("view %t: the structure does not say %q", view, want)
			}
		}
	}
	for _, f := range transcript.ExportFormats() {
		_, err := transcript.Export(t.Context(), new(bytes.Buffer), f.Name, s, &transcript.ExportOptions{Structure: true})
		if (err == nil) != (f.Name == "html") {
			t.Errorf("structure as %s: %v", f.Name, err)
		}
	}
}
