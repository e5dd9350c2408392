package anthropic

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// cutMark is the client's breakpoint as furl sets it again.
const cutMark = `,"cache_control":{"type":"ephemeral"}`

// A changed view has a cache breakpoint where it was changed last, equal to
// the client's next one, if the client leaves one unused; no other bytes of
// the body change for it.
func TestEncodeRequestMarksTheCut(t *testing.T) {
	const (
		task   = `{"role":"user","content":[{"type":"text","text":"go"}]}`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"N","name":"ls","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"N","content":"long"MARK}]}`
		hour   = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	)
	step := func(id, mark string) string {
		return strings.ReplaceAll(call+","+strings.Replace(result, "MARK", mark, 1), "N", id)
	}
	body := func(fields, first, second, third string) string {
		return `{"model":"m"` + fields + `,"messages":[` + task + "," + step("a", first) + "," + step("b", second) + "," + step("c", third) + `]}`
	}
	mask := func(messages ...int) func(*furl.View) {
		return func(v *furl.View) {
			for i, at := range messages {
				edit(v, at, 0, "short")
				v.Messages[at].Blocks[0].By = furl.Seq(90 + i)
			}
		}
	}
	short := func(s string, n int) string { return strings.Replace(s, `"long"`, `"short"`, n) }
	const auto = `,"cache_control":{"type":"ephemeral"}`
	const system = `,"system":[{"type":"text","text":"s"` + cutMark + `}]`
	for _, test := range []struct {
		name, body, want string
		change           func(*furl.View)
	}{
		{"automatic", body(auto, "", "", ""), short(body(auto, cutMark, "", ""), 1), mask(2)},
		{"automatic, after the list", strings.TrimSuffix(body("", "", "", ""), "}") + auto + "}",
			strings.TrimSuffix(short(body("", cutMark, "", ""), 1), "}") + auto + "}", mask(2)},
		{"on the last message, of an hour", body("", "", "", hour), short(body("", hour, "", hour), 1), mask(2)},
		{"the newest reduction's place", body("", "", "", cutMark), short(body("", "", cutMark, cutMark), 2), mask(2, 4)},
		{"an older change after the newest", body("", "", "", cutMark), short(body("", cutMark, "", cutMark), 2), mask(4, 2)},
		{"there already", body("", cutMark, "", cutMark), short(body("", cutMark, "", cutMark), 1), mask(2)},
		{"after a marker", body("", "", "", cutMark),
			strings.Replace(body("", "", "", cutMark), step("a", ""), `{"role":"user","content":[{"type":"text","text":"x"`+cutMark+`}]}`, 1),
			func(v *furl.View) { mark(v, 1, 3, "x") }},
		{"none of the client's", body("", "", "", ""), short(body("", "", "", ""), 1), mask(2)},
		{"no breakpoint of the client after it", body(system, "", "", ""), short(body(system, "", "", ""), 1), mask(2)},
		{"none to spare", body(auto+system, "", cutMark, cutMark), short(body(auto+system, "", cutMark, cutMark), 1), mask(2)},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := decode(t, test.body)
			v := viewOf(req.Messages)
			test.change(v)
			got, err := Codec.EncodeRequest(req, v)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if err := Codec.Validate(decode(t, string(got)), furl.Model{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A user text that is hidden in place gets no breakpoint: only calls, results
// and markers do.
func TestEncodeRequestMarksNoWords(t *testing.T) {
	req := decode(t, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":"c"},{"role":"user","content":"d"}],"cache_control":{"type":"ephemeral"}}`)
	v := viewOf(req.Messages)
	edit(v, 0, 1, "x")
	got, err := Codec.EncodeRequest(req, v)
	if want := strings.Replace(string(req.Body), `"b"`, `"x"`, 1); err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// The breakpoints say how long the cache entries of a request live, and what has entries.
func TestCacheRequest(t *testing.T) {
	const (
		five = `"cache_control":{"type":"ephemeral"}`
		hour = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
		user = `{"role":"user","content":[{"type":"text","text":"go"}]}`
	)
	said := func(mark string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x",` + mark + `}]}`
	}
	lives := func(d time.Duration) protocol.CacheRequest { return protocol.CacheRequest{Lifetime: d, HourTail: -1} }
	preamble := func(d time.Duration) protocol.CacheRequest {
		return protocol.CacheRequest{Lifetime: d, HourTail: -1, Uncached: true}
	}
	mixed := func(tail int) protocol.CacheRequest {
		return protocol.CacheRequest{Lifetime: 5 * time.Minute, HourTail: tail}
	}
	for _, tt := range []struct {
		name, body string
		want       protocol.CacheRequest
	}{
		{"none", `{"messages":[` + user + `]}`, preamble(0)},
		{"null", `{"messages":[` + said(`"cache_control":null`) + `]}`, preamble(0)},
		{"five minutes", `{"messages":[` + said(five) + `]}`, lives(5 * time.Minute)},
		{"an hour", `{"messages":[` + user + "," + said(hour) + `]}`, lives(time.Hour)},
		{"both: the messages'", `{"system":[{"type":"text","text":"s",` + hour + `}],"messages":[` + said(five) + `]}`, lives(5 * time.Minute)},
		{"both, in messages", `{"messages":[` + said(hour) + "," + user + "," + said(five) + `]}`, mixed(2)},
		{"both, the end automatic", `{` + five + `,"messages":[` + user + "," + said(hour) + "," + user + `]}`, mixed(1)},
		{"in a part of a result", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x",` + hour + `}]}]}]}`, lives(time.Hour)},
		{"automatic", `{` + hour + `,"messages":[` + user + `]}`, lives(time.Hour)},
		{"only the instructions", `{"system":[{"type":"text","text":"s",` + hour + `}],"messages":[` + user + `]}`, preamble(time.Hour)},
		{"only the tools", `{"tools":[{"name":"a",` + hour + `}],"messages":[` + user + `]}`, preamble(time.Hour)},
	} {
		if got := Codec.CacheRequest(decode(t, tt.body)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
