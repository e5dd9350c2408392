package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const ownHeader = `{"format":"furl-session","version":1,"records":0,"meta":{}}`

func ownMessage(seq, parent int) string {
	return fmt.Sprintf(`{"seq":%d,"parent":%d,"kind":"message","by":"client","role":"user","blocks":[{"kind":"text","text":"w"}]}`, seq, parent)
}

// takeovers is a session of many reductions, which the given number of
// branches take over.
func takeovers(branches, reductions int) string {
	var b strings.Builder
	fmt.Fprintln(&b, ownHeader)
	fmt.Fprintln(&b, ownMessage(1, 0))
	for i := range reductions {
		fmt.Fprintf(&b, `{"seq":%d,"parent":%d,"kind":"reduction","by":"furl","items":[{"spans":[{"first":{"msg":1},"last":{"msg":1}}],"show":"in"}]}`+"\n", i+2, i+1)
	}
	for seq := reductions + 2; branches > 0; branches, seq = branches-1, seq+2 {
		fmt.Fprintf(&b, `{"seq":%d,"parent":1,"kind":"head","by":"client","from":1}`+"\n", seq)
		fmt.Fprintf(&b, `{"seq":%d,"parent":1,"kind":"takeover","by":"furl","branch":%d}`+"\n", seq+1, reductions+1)
	}
	return b.String()
}

// The reductions that takeovers refer to are kept in memory, so their number
// is limited.
func TestTooManyTakeovers(t *testing.T) {
	_, err := Read("many", strings.NewReader(takeovers(1100, 1000)))
	if err == nil || !strings.Contains(err.Error(), "takeovers take over") {
		t.Errorf("got %v, want an error about takeovers", err)
	}
}

// Files built to be expensive stay cheap. The time limit is a hundred times
// what each takes; quadratic behaviour exceeds it.
func TestHostileFiles(t *testing.T) {
	n := 20_000
	if raceDetector {
		n = 4_000
	}
	lines := func(count int, line func(i int) string) string {
		var b strings.Builder
		for i := range count {
			b.WriteString(line(i))
			b.WriteByte('\n')
		}
		return b.String()
	}
	list := func(count int, item func(i int) string) string {
		var items []string
		for i := range count {
			items = append(items, item(i))
		}
		return strings.Join(items, ",")
	}
	record := func(typ, uuid, parent, content string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"id":%q,"role":%q,"content":%s}}`, typ, uuid, parent, uuid, typ, content)
	}
	tests := []struct {
		name, data string
	}{
		{"open calls", record("user", "u", "", `"go"`) + "\n" +
			record("assistant", "a", "u", "["+list(n, func(i int) string { return fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":"x","input":{}}`, i) })+"]") + "\n" +
			record("user", "v", "a", `"stop"`)},
		{"results without calls", record("user", "u", "", "["+list(5*n/2, func(i int) string { return fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c%d"}`, i) })+"]")},
		{"headers", lines(n, func(i int) string { return ownHeader })},
		{"rewinds", ownHeader + "\n" + ownMessage(1, 0) + "\n" + lines(3*n/2, func(i int) string {
			return fmt.Sprintf(`{"seq":%d,"parent":1,"kind":"head","by":"client","from":1}`, i+2)
		})},
		{"restorations", ownHeader + "\n" + ownMessage(1, 0) + "\n" + lines(n, func(i int) string {
			if i%2 == 0 {
				return fmt.Sprintf(`{"seq":%d,"parent":%d,"kind":"reduction","by":"furl","items":[{"spans":[{"first":{"msg":1},"last":{"msg":1}}],"show":"in"}]}`, i+2, i+1)
			}
			return fmt.Sprintf(`{"seq":%d,"parent":%d,"kind":"restoration","by":"person","of":%d}`, i+2, i+1, i+1)
		})},
		{"takeovers", takeovers(700, 1000)},
		{"a fault at the end", ownHeader + "\n" + lines(n, func(i int) string { return ownMessage(i+1, i) }) +
			fmt.Sprintf(`{"seq":%d,"parent":%d,"kind":"restoration","by":"person","of":7}`, n+1, n)},
		{"deep messages", ownHeader + "\n" + lines(50, func(i int) string {
			return fmt.Sprintf(`{"seq":%d,"parent":%d,"kind":"message","role":"user","blocks":[],"raw":%s%s}`, i+1, i, strings.Repeat("[", 9000), strings.Repeat("]", 9000))
		})},
		{"a cycle of parents", lines(n, func(i int) string {
			return fmt.Sprintf(`{"type":"progress","uuid":"p%d","parentUuid":"p%d","sessionId":"s"}`, i, (i+1)%n)
		}) + lines(2000, func(i int) string { return record("user", fmt.Sprint("u", i), "p7", `"hi"`) })},
		{"branches", record("user", "u", "", `"hi"`) + "\n" + lines(n, func(i int) string {
			return record([]string{"user", "assistant"}[i%2], fmt.Sprint("b", i), "u", `"x"`)
		})},
		{"compactions", lines(n, func(i int) string {
			if i%2 == 0 {
				return fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","uuid":"s%d","parentUuid":null,"sessionId":"s"}`, i)
			}
			return fmt.Sprintf(`{"type":"user","uuid":"s%d","parentUuid":"s%d","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"sum"}}`, i, i-1)
		})},
		{"sessions", lines(n, func(i int) string {
			return fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":"u%d","sessionId":"s%d","message":{"role":"user","content":"x"}}`, i, i-1, i)
		})},
		{"markers that hide each other", "[" + list(5000, func(i int) string {
			return fmt.Sprintf(`{"role":"user","content":"m","ts":%d,"isTruncationMarker":true,"truncationId":"T%d","truncationParent":"T%d"}`, i+1, i, (i+1)%5000)
		}) + "]"},
		{"deep nesting", record("user", "u", "", strings.Repeat("[", 5*n))},
		{"fences without end", "<!-- Generated by SpecStory -->\n\n_**User**_\n\nhi\n\n_**Agent**_\n\n" + strings.Repeat("```go\n", 10*n)},
		{"elements without end", "<!-- Generated by SpecStory -->\n\n_**User**_\n\nhi\n\n_**Agent**_\n\n" + strings.Repeat("<tool-use data-tool-name=\"x\"><details>\n", 5*n)},
		{"parts", "<!-- Generated by SpecStory -->\n\n_**User**_\n\nhi\n\n_**Agent**_\n\n" + strings.Repeat("x\n\n---\n\n", 5*n)},
		{"chats", "## SpecStory\n\n" + strings.Repeat("## a (2025)\n\n_**User**_\n\nhi\n\n", n)},
		{"pairs", `{"history":[` + list(n, func(int) string {
			return `[{"action":"run","args":{"command":"x"},"source":"agent"},{"observation":"run","content":"y","extras":{}}]`
		}) + "]}"},
		{"broken lines", record("user", "u", "", `"hi"`) + "\n" + strings.Repeat("x\n", 10*n)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			rec, err := Read(tt.name, strings.NewReader(tt.data))
			took := time.Since(start)
			if _, ok := errors.AsType[*UnknownFormatError](err); err != nil && !ok && tt.name != "a fault at the end" {
				t.Fatal(err)
			}
			if took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			if rec == nil {
				return
			}
			if len(rec.Skipped) > maxSkips+1 || len(rec.Notes) > maxSkips {
				t.Errorf("%d skipped and %d notes", len(rec.Skipped), len(rec.Notes))
			}
			t.Logf("%v for %d bytes, %d sessions, %d skipped", took, len(tt.data), len(rec.Sessions), len(rec.Skipped))
		})
	}
}

// A small compressed file may be large after decompression.
func TestPackedBomb(t *testing.T) {
	text := strings.Repeat("\n", 20<<20)
	for _, packed := range [][]byte{gzipped(t, text), zstded(t, text)} {
		rd := &Reader{MaxBytes: 1 << 20}
		_, err := rd.Read("bomb", bytes.NewReader(packed))
		if _, ok := errors.AsType[*TooLargeError](err); !ok {
			t.Errorf("%d bytes: %v, want a TooLargeError", len(packed), err)
		}
	}
}

// For any bytes, compressed or not, Read returns a valid recording or an
// error.
func FuzzRead(f *testing.F) {
	for _, data := range fixtures(f) {
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		rd := &Reader{MaxBytes: 1 << 20, Counter: byteCounter{}}
		rec, err := rd.Read("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, s := range rec.Sessions {
			checkSound(t, s, rec.Format)
			if s.ID == "" || s.Start().After(s.End()) && s.Log.Len() < 2 {
				t.Errorf("session %q from %v to %v", s.ID, s.Start(), s.End())
			}
		}
	})
}
