package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
)

func exportNames() (names []string) {
	for _, f := range ExportFormats() {
		names = append(names, f.Name)
	}
	return names
}

// pathMessages returns the messages on the current branch.
func pathMessages(s *Session) []*furl.Message {
	st := s.Log.State()
	var out []*furl.Message
	for i := range st.Len() {
		_, m := st.Message(i)
		out = append(out, m)
	}
	return out
}

// blockBytes returns the bytes of each block of a message, or its text if it
// has no bytes.
func blockBytes(m *furl.Message) []string {
	var out []string
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.End > b.Start {
			out = append(out, string(m.Raw[b.Start:b.End]))
		} else {
			out = append(out, b.Text)
		}
	}
	return out
}

// imported returns the single session of an export after reading it again.
func imported(t *testing.T, s *Session, data []byte) *Session {
	t.Helper()
	rec, err := Read("exported", bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v in %.300s", s.ID, err, data)
	}
	if len(rec.Sessions) != 1 || len(rec.Skipped) > 0 {
		t.Fatalf("%s: read as %s: %d sessions, skipped %v", s.ID, rec.Format, len(rec.Sessions), rec.Skipped)
	}
	return rec.Sessions[0]
}

// checkSameMessages checks that the messages on the path are unchanged: their
// digests and the bytes of their blocks, and with exact all their bytes.
func checkSameMessages(t *testing.T, format string, s, back *Session, exact bool) {
	t.Helper()
	want, got := pathMessages(s), pathMessages(back)
	if len(want) != len(got) {
		t.Errorf("%s of %s: %d messages, want %d", format, s.ID, len(got), len(want))
		return
	}
	for i := range want {
		same := want[i].Digest == got[i].Digest && slices.Equal(blockBytes(want[i]), blockBytes(got[i]))
		if !same || exact && !bytes.Equal(want[i].Raw, got[i].Raw) {
			t.Errorf("%s of %s: message %d came back as\n%.500s, want\n%.500s", format, s.ID, i, got[i].Raw, want[i].Raw)
			return
		}
	}
}

// runs returns the bytes of all blocks with their roles, the results of a run
// of messages sorted: Claude Code stores a reply as one message, and its
// results in the order of the calls. Cache breakpoints are left out, because
// Claude Code sets its own.
func runs(s *Session) (out []string) {
	from := 0
	var role furl.Role
	for _, m := range pathMessages(s) {
		if m.Role != role {
			from, role = len(out), m.Role
		}
		for i, b := range blockBytes(m) {
			if m.Blocks[i].Kind != furl.KindResult {
				from = len(out) + 1
			}
			b := withoutCacheControl([]byte("[" + b + "]"))
			out = append(out, string(m.Role)+" "+string(b))
		}
		slices.Sort(out[min(from, len(out)):])
	}
	return out
}

// hasSystem reports whether a session has a message of the role system.
func hasSystem(s *Session) bool {
	return slices.ContainsFunc(pathMessages(s), func(m *furl.Message) bool { return m.Role == furl.RoleSystem })
}

// ownExports are the formats that store the messages of a wire format
// unchanged.
var ownExports = map[furl.Format][]string{
	furl.FormatAnthropic: {"anthropic", "claude-code"},
	furl.FormatChat:      {"openai-chat"},
	furl.FormatResponses: {"openai-responses"},
}

// A session exported in its wire format keeps its messages.
func checkExports(t *testing.T, format string, s *Session) {
	t.Helper()
	if s.Log.State().Len() == 0 {
		return
	}
	for _, name := range ownExports[s.Wire] {
		data, done := export(t, name, s, nil)
		if !json.Valid(data) && name != "claude-code" {
			t.Errorf("%s of %s is not valid JSON", name, s.ID)
		}
		if done.Messages != s.Log.State().Len() {
			t.Errorf("%s of %s: %d messages written of %d", name, s.ID, done.Messages, s.Log.State().Len())
		}
		back := imported(t, s, data)
		if name == "claude-code" {
			if back.Wire != s.Wire {
				t.Errorf("%s of %s is read as %s", name, s.ID, back.Wire)
			}
			if hasSystem(s) { // becomes words of the user
				if want, got := seen(s), seen(back); want != got {
					t.Errorf("%s of %s came back as\n%.2000s\nwant\n%.2000s", name, s.ID, got, want)
				}
				continue
			}
			if want, got := runs(s), runs(back); !slices.Equal(want, got) {
				t.Errorf("%s of %s came back as\n%.2000q, want\n%.2000q", name, s.ID, got, want)
			}
			if format == "claude-code" {
				checkSameMessages(t, name, s, back, true)
			}
			continue
		}
		checkSameMessages(t, name, s, back, true)
	}
	for _, opts := range []*ExportOptions{nil, {View: true}} {
		for _, name := range exportNames() {
			if name != "furl" {
				data, _ := export(t, name, s, opts)
				checkAccepted(t, name, s, data)
			}
		}
	}
	if format == "claude-code" {
		checkClaudeView(t, s)
	}
}

// checkAccepted checks that the provider accepts a request body.
func checkAccepted(t *testing.T, name string, s *Session, data []byte) {
	t.Helper()
	codec := codecOf(furl.Format(name))
	if string(codec.Format()) != name || len(s.Log.State().OpenCalls()) > 0 {
		return
	}
	req, err := codec.DecodeRequest(data)
	if err == nil {
		err = codec.Validate(req, furl.Model{Format: codec.Format(), Prefill: true, SystemInside: true})
	}
	if err != nil {
		t.Errorf("%s of %s: %v", name, s.ID, err)
	}
}

// checkClaudeView checks that the compactions of a Claude Code session
// survive an export in its format: the model sees the same.
func checkClaudeView(t *testing.T, s *Session) {
	t.Helper()
	data, done := export(t, "claude-code", s, nil)
	if slices.ContainsFunc(done.Notes, func(n string) bool { return strings.Contains(n, "reduction") }) {
		return
	}
	if want, got := seen(s), seen(imported(t, s, data)); want != got {
		t.Errorf("%s: the model sees\n%.1000s\nwant\n%.1000s", s.ID, got, want)
	}
}

func seen(s *Session) string {
	var b strings.Builder
	v := s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			b.WriteString(v.Messages[i].Blocks[j].Words())
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestExportsOfFixtures(t *testing.T) {
	for name, data := range fixtures(t) {
		rec, err := Read(name, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			checkExports(t, rec.Format, s)
		}
	}
}

func TestExportsOfRecordings(t *testing.T) {
	eachRecording(t, func(name string, rec *Recording) {
		t.Run(name, func(t *testing.T) {
			for _, s := range rec.Sessions {
				checkExports(t, rec.Format, s)
			}
		})
	})
}

// Every export of a random session, of the transcript and of the view, at any
// record, is a request that the provider accepts.
func TestExportsOfRandomSessions(t *testing.T) {
	for _, wire := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for seed := range uint64(8) {
			s := randomSession(t, wire, seed, 40)
			for _, name := range exportNames() {
				if name == "furl" {
					continue
				}
				for at := 0; at <= s.Log.Len(); at += 7 {
					data, _ := export(t, name, s, &ExportOptions{At: furl.Seq(at), View: seed%2 == 0})
					if at > 0 {
						checkAccepted(t, name, s, data)
					}
				}
			}
		}
	}
}

func TestExportAt(t *testing.T) {
	s := randomSession(t, furl.FormatAnthropic, 9, 40)
	var call furl.Seq // a message with open calls
	for _, r := range s.Log.Path(s.Log.Head()) {
		if m, ok := r.Body.(*furl.Message); ok && slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall }) {
			call = r.Seq
		}
	}
	_, done := export(t, "anthropic", s, &ExportOptions{At: call})
	if len(done.Notes) == 0 || !strings.HasPrefix(done.Notes[0], "the export ends at record") {
		t.Errorf("export up to an open call: %q", done.Notes)
	}
	_, err := Export(t.Context(), &bytes.Buffer{}, "anthropic", s, &ExportOptions{At: furl.Seq(s.Log.Len() + 1)})
	if !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("at a record that does not exist: %v", err)
	}
}

// Notes say what a format cannot represent.
func TestExportNotes(t *testing.T) {
	rec, err := ReadFile("testdata/furl-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	for format, want := range map[string][]string{
		"anthropic":        {"2 reductions not exported"},
		"claude-code":      {"2 reductions not exported", "instructions and tools not exported"},
		"openai-chat":      {"1 thinking block not exported", "1 failed result exported as a plain result", "the definitions of 1 tool were not exported"},
		"openai-responses": {"1 thinking block not exported", "1 failed result exported as a plain result", "the definitions of 1 tool were not exported"},
	} {
		_, done := export(t, format, s, nil)
		for _, w := range want {
			if !slices.ContainsFunc(done.Notes, func(n string) bool { return strings.HasPrefix(n, w) }) {
				t.Errorf("%s: notes %q, want %q", format, done.Notes, w)
			}
		}
	}
}

// The golden files show each export of one session, of its transcript and of
// what the model sees. go test -update rewrites them.
func TestExportGolden(t *testing.T) {
	rec, err := ReadFile("testdata/furl-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ExportFormats() {
		for _, opts := range []*ExportOptions{{}, {View: true}} {
			if f.Whole {
				continue // testdata/furl-v1.jsonl itself
			}
			name := "testdata/exports/" + f.Name + f.Extension
			if opts.View {
				name = "testdata/exports/" + f.Name + "-view" + f.Extension
			}
			got, done := export(t, f.Name, rec.Sessions[0], opts)
			if f.Name == "html" { // without the long style sheet and its checksum
				got = regexp.MustCompile(`sha256-[^&]*(&#43;[^&]*)*&#39;`).ReplaceAll(got, []byte("sha256-…&#39;"))
				from, to := bytes.Index(got, []byte("<style>")), bytes.Index(got, []byte("</style>"))
				got = slices.Concat(got[:from], got[to+len("</style>"):])
			}
			for _, n := range done.Notes {
				got = fmt.Appendf(got, "note: %s\n", n)
			}
			if *update {
				if err := os.WriteFile(name, got, 0o600); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", name, diff)
			}
		}
	}
}

// A message may contain newlines between its tokens; a record of Claude Code
// may not.
func TestExportClaudeLines(t *testing.T) {
	log := furl.NewLog()
	for i, raw := range []string{
		"{\n \"role\": \"user\",\r\n \"content\": [\n  {\"type\": \"text\", \"text\": \"two  words\"}\n ]\n}",
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\n\"text\":\"hi\"}]}",
	} {
		m, err := codecOf(furl.FormatAnthropic).DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(furl.Seq(i), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	s := &Session{ID: "s", Log: log, Wire: furl.FormatAnthropic}
	data, _ := export(t, "claude-code", s, nil)
	if n := bytes.Count(data, []byte("\n")); n != 2 {
		t.Errorf("%d lines for 2 messages:\n%s", n, data)
	}
	back := imported(t, s, data)
	for i, m := range pathMessages(back) {
		if want := pathMessages(s)[i]; m.Digest != want.Digest {
			t.Errorf("%s was imported as %s", want.Raw, m.Raw)
		}
	}
}

// Claude Code adds cache breakpoints to each request, and the provider accepts four, so
// its session file contains none. A field of a tool call's input is no breakpoint.
func TestExportClaudeCacheControl(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	log := furl.NewLog()
	for i, raw := range []string{
		`{"role":"user","content":[{"type":"text","text":"look"` + mark + `},{"type":"text","text":"cache_control"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"read","input":{"p":1` + mark + `}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x"` + mark + `}]` + mark + `}]}`,
	} {
		m, err := codecOf(furl.FormatAnthropic).DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(furl.Seq(i), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	s := &Session{ID: "s", Log: log, Wire: furl.FormatAnthropic}
	data, _ := export(t, "claude-code", s, nil)
	if n := bytes.Count(data, []byte(mark)); n != 1 {
		t.Errorf("%d cache breakpoints, want only the input's field:\n%s", n, data)
	}
	for i, m := range pathMessages(imported(t, s, data)) {
		if want := pathMessages(s)[i]; m.Digest != want.Digest {
			t.Errorf("%s was imported as %s", want.Raw, m.Raw)
		}
	}
}

// A session without records can be exported and imported.
func TestExportEmpty(t *testing.T) {
	s := &Session{ID: "empty", Wire: furl.FormatChat, Log: furl.NewLog()}
	checkFurlTrip(t, s)
	for _, name := range exportNames() {
		for _, view := range []bool{false, true} {
			if name == "furl" && view {
				continue
			}
			data, done := export(t, name, s, &ExportOptions{View: view})
			if done.Messages != 0 || strings.HasSuffix(name, "c") && !json.Valid(data) {
				t.Errorf("%s: %d messages in %s", name, done.Messages, data)
			}
		}
	}
}
