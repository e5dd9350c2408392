package transcript

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// fixtures returns the names and contents of the fixtures.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.want")
	if err != nil || len(names) == 0 {
		t.Fatal("no fixtures", err)
	}
	all := make(map[string][]byte, len(names))
	for _, name := range names {
		name = strings.TrimSuffix(name, ".want")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = data
	}
	return all
}

// checkSound checks what holds for every session, however broken the file:
// its path folds, and its view can be encoded and decoded again.
func checkSound(t *testing.T, s *Session, format string) {
	t.Helper()
	if format == furlOwn.name {
		checkOwn(t, s)
		return
	}
	codec := codecOf(s.Wire)
	if s.Messages < 0 || s.Calls < 0 || s.Results < 0 {
		t.Errorf("counts below zero: %d messages, %d calls, %d results", s.Messages, s.Calls, s.Results)
	}
	for i := 1; i <= s.Log.Len(); i++ {
		r := s.Log.At(furl.Seq(i))
		if r.By != furl.Import {
			t.Fatalf("record %d is by %v", i, r.By)
		}
		if m, ok := r.Body.(*furl.Message); ok && (m.Format != s.Wire || len(m.Raw) == 0) {
			t.Fatalf("record %d is in %q with %d bytes, the session in %q", i, m.Format, len(m.Raw), s.Wire)
		}
	}
	st, err := furl.Fold(s.Log, s.Log.Head())
	if err != nil {
		t.Fatal(err)
	}
	body, err := requestBody(codec, st.View(furl.Model{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := codec.DecodeRequest(body); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

// Every importer makes valid sessions or an error from any bytes.
func FuzzImporters(f *testing.F) {
	for name, data := range fixtures(f) {
		p := newProbe(data)
		for i, format := range formats {
			if format == recognise(p) {
				f.Add(byte(i), data)
			}
		}
		if strings.HasSuffix(name, ".jsonl") { // records in another order
			lines := bytes.SplitAfter(data, []byte("\n"))
			f.Add(byte(0), bytes.Join(append(lines[len(lines)/2:], lines[:len(lines)/2]...), nil))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		format := formats[int(which)%len(formats)]
		if format.read == nil {
			return
		}
		in := &input{bounds: unbounded, data: data, maxLine: defaultMaxLine, rec: &Recording{}, counter: byteCounter{}}
		sessions, err := format.read(in)
		if err != nil {
			return
		}
		for _, s := range sessions {
			checkSound(t, s, format.name)
		}
	})
}

// A truncated file keeps the records before the end.
func TestTruncated(t *testing.T) {
	for name, data := range fixtures(t) {
		whole, err := Read(name, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		full := countRecording(whole)
		before := 0
		for cut := len(data) / 3; cut < len(data)-1; cut += 1 + len(data)/97 {
			rec, err := Read(name, bytes.NewReader(data[:cut]))
			if _, ok := errors.AsType[*UnknownFormatError](err); ok {
				continue // too little to detect the format
			}
			if err != nil {
				t.Errorf("%s cut at %d: %v", name, cut, err)
				continue
			}
			for _, s := range rec.Sessions {
				checkSound(t, s, rec.Format)
			}
			got := countRecording(rec)
			if rec.Format == "aider" {
				continue // its prefixes and suffixes enclose the text
			}
			if got.messages > full.messages || got.calls > full.calls {
				t.Errorf("%s cut at %d: %+v, the whole file has %+v", name, cut, got, full)
			}
			// OpenHands has one run per line; Gemini CLI removes messages; what
			// is a result in SpecStory's files depends on what follows it.
			if got.messages < before && rec.Format != "openhands" && rec.Format != "specstory" && name != "gemini.jsonl" {
				t.Errorf("%s cut at %d: %d messages, with less of the file %d", name, cut, got.messages, before)
			}
			before = got.messages
		}
	}
}

// Fields of unexpected types and lost or repeated lines still give valid
// sessions. If they are rendered, a provider accepts the requests.
func TestMangled(t *testing.T) {
	values := []string{`null`, `0`, `-1`, `1e99`, `""`, `"x"`, `[]`, `{}`, `true`, `[{"type":"text","text":"w"}]`}
	value := regexp.MustCompile(`:\s*("(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null)`)
	all, rounds := fixtures(t), 40
	if raceDetector {
		rounds = 10
	}
	for seed, name := range slices.Sorted(maps.Keys(all)) {
		data, rng := all[name], rand.New(rand.NewPCG(1, uint64(seed)))
		for range rounds {
			bad := bytes.Clone(data)
			for range 1 + rng.IntN(4) {
				at := value.FindAllSubmatchIndex(bad, -1)
				one := at[rng.IntN(len(at))]
				bad = slices.Concat(bad[:one[2]], []byte(values[rng.IntN(len(values))]), bad[one[3]:])
			}
			if strings.HasSuffix(name, ".jsonl") {
				lines := bytes.SplitAfter(bad, []byte("\n"))
				i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
				lines[i] = lines[j]
				bad = bytes.Join(lines, nil)
			}
			rec, err := Read(name, bytes.NewReader(bad))
			if err != nil {
				continue
			}
			for _, s := range rec.Sessions {
				checkSound(t, s, rec.Format)
				switch rec.Format {
				case "codex", "openai-chat", "openai-responses", "anthropic-request": // kept byte for byte
				default:
					if !hasSystem(s) { // of requests that are kept byte for byte
						checkRequests(t, s, true)
					}
				}
			}
			if t.Failed() {
				t.Fatalf("from %s:\n%s\n%s", name, bad, written(rec))
			}
		}
	}
}
