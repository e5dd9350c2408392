package record_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/wire/anthropic"
)

// benchRecords has what sessions are made of: a result of one kilobyte, a call
// with words before it, a short message, an exchange, a reduction.
func benchRecords(b *testing.B) map[string]furl.Record {
	words, err := json.Marshal(strings.Repeat("some words of a result\n", 44))
	if err != nil {
		b.Fatal(err)
	}
	records := make(map[string]furl.Record)
	for name, raw := range map[string]string{
		"result": fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":%s}]}`, words),
		"call":   `{"role":"assistant","content":[{"type":"text","text":"I read the file, then I run the tests."},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"/src/record/describe.go"}}]}`,
		"short":  `{"role":"user","content":"go on"}`,
	} {
		m, err := anthropic.Codec.DecodeMessage([]byte(raw))
		if err != nil {
			b.Fatal(err)
		}
		records[name] = furl.Record{Seq: 1, Body: m}
	}
	for _, r := range recordsOfEachKind(b) {
		switch r.Body.(type) {
		case *furl.Exchange:
			records["exchange"] = r
		case *furl.Reduction:
			records["reduction"] = r
		}
	}
	return records
}

func eachRecord(b *testing.B, f func(b *testing.B, r furl.Record)) {
	records := benchRecords(b)
	for _, name := range []string{"result", "call", "short", "exchange", "reduction"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			f(b, records[name])
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	eachRecord(b, func(b *testing.B, r furl.Record) {
		for b.Loop() {
			if _, _, err := record.Encode(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	eachRecord(b, func(b *testing.B, r furl.Record) {
		head, body, err := record.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := record.Decode(head, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	eachRecord(b, func(b *testing.B, r furl.Record) {
		var line []byte
		for b.Loop() {
			var err error
			if line, err = (record.JSON{}).Append(line[:0], r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkParseJSON(b *testing.B) {
	eachRecord(b, func(b *testing.B, r furl.Record) {
		line, err := (record.JSON{}).Append(nil, r)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := (record.JSON{}).Parse(line); err != nil {
				b.Fatal(err)
			}
		}
	})
}
