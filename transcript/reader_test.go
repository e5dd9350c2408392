package transcript

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t *testing.T, s string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(s), nil)
}

func TestUnpack(t *testing.T) {
	text := strings.Repeat("a line of text\n", 1000)
	gz := gzipped(t, text)
	for name, packed := range map[string][]byte{"plain": []byte(text), "gzip": gz, "zstd": zstded(t, text), "with a BOM": []byte("\xef\xbb\xbf" + text)} {
		got, torn, err := unpack(name, bytes.NewReader(packed), 1<<20)
		if err != nil || torn != nil || string(got) != text {
			t.Errorf("%s: %d bytes, torn %v, %v; want the text", name, len(got), torn, err)
		}
		_, _, err = unpack(name, bytes.NewReader(packed), int64(len(text)-1))
		if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Limit != int64(len(text)-1) {
			t.Errorf("%s beyond the limit: %v, want a TooLargeError", name, err)
		}
	}
	got, torn, err := unpack("torn", bytes.NewReader(gz[:len(gz)-10]), 1<<20)
	if err != nil || torn == nil || !strings.HasPrefix(text, string(got)) {
		t.Errorf("truncated: %d bytes, torn %v, %v; want the start of the text and an error", len(got), torn, err)
	}
	if _, _, err := unpack("bad", bytes.NewReader(gzipMagic), 1<<20); err == nil {
		t.Error("a file that is only the gzip magic must not be decompressed")
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := Read("notes.txt", strings.NewReader("dear diary"))
	unknown, ok := errors.AsType[*UnknownFormatError](err)
	if !ok || unknown.Name != "notes.txt" || len(unknown.Tried) != len(Formats()) {
		t.Fatalf("%v, want an UnknownFormatError with the formats tried", err)
	}
	for _, f := range Formats() {
		if !strings.Contains(err.Error(), f) {
			t.Errorf("%q does not name %s", err, f)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestBeside(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := &input{dir: dir}
	if got := string(in.beside("other.json")); got != "{}" {
		t.Errorf("read %q, want {}", got)
	}
	if in.beside("none.json") != nil || in.beside(".") != nil || (&input{}).beside("other.json") != nil {
		t.Error("beside must return nil for a missing file, a folder and an unknown folder")
	}
}

// A session whose only request failed has no sent messages.
func TestReadWithoutMessages(t *testing.T) {
	const failed = `{"type":"assistant","uuid":"a","parentUuid":null,"sessionId":"s","isApiErrorMessage":true,"message":{"id":"x","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error: 529"}]}}`
	rec, err := Read("failed.jsonl", strings.NewReader(failed+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Sessions) != 0 || len(rec.Notes) != 1 || !strings.Contains(rec.Notes[0], "skipped 1 conversation") {
		t.Errorf("%d sessions, notes %q", len(rec.Sessions), rec.Notes)
	}
}

// The error for a database that is not read from its file says what to do.
func TestReadDatabase(t *testing.T) {
	_, err := Read("opencode.db", strings.NewReader("SQLite format 3\x00\x10\x00"))
	if err == nil || !strings.Contains(err.Error(), "from their files") {
		t.Errorf("%v", err)
	}
}
