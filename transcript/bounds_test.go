package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// claudeLines is a recording of n messages of about size bytes.
func claudeLines(n, size int) []byte {
	var b bytes.Buffer
	text := strings.Repeat("word ", size/5)
	for i := range n {
		fmt.Fprintf(&b, `{"type":"user","sessionId":"s","uuid":"u%d","parentUuid":null,"message":{"role":"user","content":"%d %s"}}`+"\n", i, i, text)
	}
	return b.Bytes()
}

func TestRecordLimits(t *testing.T) {
	chat := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"hi"},`, 101), ",") + "]")
	for _, test := range []struct {
		name   string
		reader Reader
		data   []byte
		want   string // of the error, "" for none
	}{
		{"as many records as allowed", Reader{MaxRecords: 100}, claudeLines(100, 10), ""},
		{"one line more", Reader{MaxRecords: 100}, claudeLines(101, 10), "x: more than 100 records, the limit for one recording"},
		{"one element more", Reader{MaxRecords: 100}, chat, "x: more than 100 records"},
		{"as much memory as allowed", Reader{MaxMemory: 8 << 20}, claudeLines(10, 100_000), ""},
		{"more memory", Reader{MaxMemory: 8 << 20}, claudeLines(100, 100_000), "x: reading it as a whole takes more than 8 MB of memory"},
		{"very many values", Reader{MaxMemory: 8 << 20}, append(claudeLines(1, 10), `{"type":"user","sessionId":"s","uuid":"x","message":{"role":"user","content":[`+strings.Repeat("1,", 100_000)+`1]}}`...), "x: reading it as a whole takes more than 8 MB of memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.reader.Read("x", bytes.NewReader(test.data))
			if got := fmt.Sprint(err); test.want == "" && err != nil || !strings.HasPrefix(got, test.want) && test.want != "" {
				t.Errorf("error %q, want %q", got, test.want)
			}
			many, isMany := errors.AsType[*TooManyRecordsError](err)
			if memory, ok := errors.AsType[*TooMuchMemoryError](err); err != nil && (!isMany || many.Limit == 0) && (!ok || memory.Limit == 0) {
				t.Errorf("error %#v has no limit", err)
			}
		})
	}
}

// A large file is read line by line, with the same result as if it were read
// at once, whether or not it can be read twice.
func TestLargeFilesAreReadByLine(t *testing.T) {
	data := claudeLines(300, 50_000) // more than streamFrom
	data = append(data, "no JSON\n\n"...)
	data = append(data, bytes.ReplaceAll(claudeLines(1, 5), []byte(`"u0"`), []byte(`"last"`))...)
	if len(data) <= streamFrom {
		t.Fatalf("%d bytes are read at once, want line by line", len(data))
	}
	for _, test := range []struct {
		name string
		in   io.Reader
	}{{"a file", bytes.NewReader(data)}, {"a pipe", io.MultiReader(bytes.NewReader(data))}} {
		t.Run(test.name, func(t *testing.T) {
			rec, err := Read("x", test.in)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Format != "claude-code" || len(rec.Sessions) != 1 || rec.Sessions[0].Messages != 301 || rec.Sessions[0].Log.Len() != 301 {
				t.Errorf("%s with %d sessions", rec.Format, len(rec.Sessions))
			}
			if len(rec.Skipped) != 1 || rec.Skipped[0].Line != 301 {
				t.Errorf("skipped %v, want line 301", rec.Skipped)
			}
		})
	}
	t.Run("more bytes than allowed", func(t *testing.T) {
		rd := Reader{MaxBytes: int64(len(data)) - 1}
		_, err := rd.Read("x", bytes.NewReader(data))
		if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Limit != rd.MaxBytes {
			t.Errorf("%v", err)
		}
	})
	t.Run("a line that is too long", func(t *testing.T) {
		rd := Reader{MaxLine: 100_000}
		long := append([]byte(`{"x":"`+strings.Repeat("x", 200_000)+"\"}\n"), data...)
		rec, err := rd.Read("x", bytes.NewReader(append(bytes.Clone(data), long...)))
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Skipped) != 3 || !strings.Contains(rec.Skipped[1].Reason, "the limit is 100000") {
			t.Errorf("skipped %v", rec.Skipped)
		}
	})
}
