package record_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

func codecs(f furl.Format) protocol.Codec {
	for _, c := range []protocol.Codec{anthropic.Codec, openai.Chat, openai.Responses} {
		if c.Format() == f {
			return c
		}
	}
	return nil
}

// bothJSON are the two ways of writing records: with all blocks, and without
// those that the bytes decode to.
var bothJSON = map[string]record.JSON{"whole": {}, "short": {Codec: codecs}}

// checkJSON checks that a record comes back from its JSON as a store would
// keep it, to the byte.
func checkJSON(t testing.TB, r furl.Record) {
	t.Helper()
	head, body, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range bothJSON {
		line, err := form.Append(nil, r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if bytes.ContainsAny(line, "\n\r") || !json.Valid(line) {
			t.Fatalf("%s: not a line of JSON: %s", name, line)
		}
		back, err := form.Parse(line)
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, line)
		}
		head2, body2, err := record.Encode(back)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(head, head2) || !bytes.Equal(body, body2) || (body == nil) != (body2 == nil) {
			t.Fatalf("%s: the record came back changed from %s:\n%q %q\n%q %q", name, line, head, body, head2, body2)
		}
	}
}

// oddRecords hold what JSON has no word for.
func oddRecords() []furl.Record {
	bad := "\xff\xfe not UTF-8 \x00\x1b[31m\u2028\u0085"
	odd := []*furl.Message{
		{Role: "user", Raw: json.RawMessage("{\"role\":\"user\",\n \"content\":\"spaced\"}")},
		{Role: "user", Raw: json.RawMessage(`{"role":"user","content":"` + bad[:2] + `"}`)},
		{Role: "user", Raw: json.RawMessage(`"an input of Responses"`), Format: furl.FormatResponses},
		{Role: "user", Raw: json.RawMessage(` {} `)},
		{Role: "user", Raw: json.RawMessage("null")},
		{Role: "user", Raw: json.RawMessage{}},
		{Role: "user", Raw: json.RawMessage(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))},
		{Role: "user", Raw: json.RawMessage("no JSON at all")},
		{Role: furl.Role(bad), Format: "another", Blocks: []furl.Block{{Kind: 99, Text: bad, ID: bad, Args: json.RawMessage(bad)}}},
		{Role: "assistant", Blocks: []furl.Block{{Kind: furl.KindCall, Args: json.RawMessage("{\n}")}, {}, {Kind: furl.KindCall, Args: json.RawMessage("null")}}},
		{Role: "user", Format: furl.FormatAnthropic, Raw: json.RawMessage(`{"role":"user","content":[]}`)},
	}
	bodies := []furl.Body{
		&furl.Reduction{Scale: math.Inf(1), Cost: furl.Cost{Own: math.NaN(), Rewrite: math.Copysign(0, -1), Remaining: 1e-300, PerRequest: 0.1 + 0.2}},
		&furl.Reduction{Summary: &furl.Summary{}, Items: []furl.Item{{Show: furl.In{}}, {Show: furl.Mark{Messages: odd}}, {Show: furl.Gone{}}, {}}},
		&furl.Takeover{}, &furl.Takeover{Branch: math.MaxUint64, Moved: []furl.Moved{{}, {Old: math.MaxUint64, New: 3, Messages: -1}}},
		&furl.Restoration{Hold: 77, Spans: []furl.Span{{First: furl.Pos{Msg: math.MaxUint64, Block: -1}}}},
		&furl.Exchange{Model: bad, Thinking: furl.Pos{Block: 3}, Plan: []furl.PlanStep{{}}, Estimated: math.MinInt},
	}
	for _, m := range odd {
		bodies = append(bodies, m)
	}
	times := []time.Time{
		{}, time.Unix(0, 1).UTC(), time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("LMT", 3208)),
		time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.FixedZone("", -5*3600)),
		time.Date(2026, 7, 1, 0, 0, 0, 0, time.FixedZone("far", 26*3600)), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC),
	}
	records := make([]furl.Record, len(bodies))
	for i, b := range bodies {
		records[i] = furl.Record{Seq: furl.Seq(i), Parent: furl.Seq(i * 1000), At: times[i%len(times)], By: furl.Actor(i * 3), Body: b}
	}
	return records
}

func TestJSONRoundTrip(t *testing.T) {
	for i, r := range append(recordsOfEachKind(t), oddRecords()...) {
		t.Run(fmt.Sprintf("%d %T", i, r.Body), func(t *testing.T) { checkJSON(t, r) })
	}
}

// The fields come in one order, and what a message had on the wire stands
// among them as it was.
func TestJSONReads(t *testing.T) {
	m, err := anthropic.Codec.DecodeMessage([]byte(`{"content": "<b>&\u00e9</b>", "role": "user"}`))
	if err != nil {
		t.Fatal(err)
	}
	m.Blocks[0].Tokens = 7
	m.Digest = furl.Digest{}
	r := furl.Record{Seq: 2, Parent: 1, At: time.Date(2026, 11, 21, 10, 0, 0, 5e8, time.UTC), By: furl.Client, Body: m}
	for name, want := range map[string]string{
		"whole": `{"seq":2,"parent":1,"at":"2026-11-21T10:00:00.5Z","by":"client","kind":"message","role":"user","format":"anthropic","blocks":[{"kind":"text","text":"<b>&é</b>","tokens":7}],"raw":{"content": "<b>&\u00e9</b>", "role": "user"}}`,
		"short": `{"seq":2,"parent":1,"at":"2026-11-21T10:00:00.5Z","by":"client","kind":"message","role":"user","format":"anthropic","tokens":[7],"raw":{"content": "<b>&\u00e9</b>", "role": "user"}}`,
	} {
		got, err := bothJSON[name].Append(nil, r)
		if err != nil || string(got) != want {
			t.Errorf("%s:\n%s, %v; want\n%s", name, got, err, want)
		}
	}
}

func TestJSONRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":                   `seq 1`,
		"two":                       `{"seq":1,"kind":"head"}{}`,
		"no kind":                   `{"seq":1}`,
		"an unknown kind":           `{"seq":1,"kind":"wish"}`,
		"an unknown actor":          `{"seq":1,"kind":"head","by":"nobody"}`,
		"a block outside its bytes": `{"seq":1,"kind":"message","role":"user","blocks":[{"kind":"text","start":1,"end":9}],"raw":{}}`,
		"a block that ends early":   `{"seq":1,"kind":"message","role":"user","blocks":[{"kind":"text","start":2,"end":1}],"raw":{}}`,
		"no blocks, no bytes":       `{"seq":1,"kind":"message","role":"user"}`,
		"an unknown format":         `{"seq":1,"kind":"message","role":"user","format":"x","raw":{}}`,
		"sizes of other blocks":     `{"seq":1,"kind":"message","role":"user","format":"anthropic","tokens":[1,2],"raw":{"role":"user","content":"hi"}}`,
		"an unknown show":           `{"seq":1,"kind":"reduction","items":[{"show":"off"}]}`,
		"half a digest":             `{"seq":1,"kind":"message","role":"user","digest":"00ff","blocks":[]}`,
		"a time that is none":       `{"seq":1,"kind":"head","at":"yesterday"}`,
		"too many nanoseconds":      `{"seq":1,"kind":"head","at":{"unix":1,"nanos":1000000000}}`,
		"a number in words":         `{"seq":1,"kind":"reduction","scale":"many"}`,
	} {
		if r, err := bothJSON["short"].Parse([]byte(line)); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
	if _, err := bothJSON["whole"].Parse([]byte(`{"seq":1,"kind":"message","role":"user","format":"anthropic","raw":{"role":"user","content":"hi"}}`)); err == nil {
		t.Error("a message without blocks was read without codecs")
	}
	if _, err := (record.JSON{}).Append(nil, furl.Record{}); err == nil {
		t.Error("a record without a body was written")
	}
}

// What can be read is written again and then means the same.
func FuzzJSON(f *testing.F) {
	for _, r := range append(recordsOfEachKind(f), oddRecords()...) {
		for _, form := range bothJSON {
			line, err := form.Append(nil, r)
			if err != nil {
				f.Fatal(err)
			}
			if len(line) < 8<<10 { // large ones are slow to make smaller
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := bothJSON["short"].Parse(line)
		if err != nil {
			return
		}
		checkJSON(t, r)
		head, body, err := record.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.Decode(head, body); err != nil {
			t.Fatalf("no store could keep it: %v", err)
		}
	})
}
