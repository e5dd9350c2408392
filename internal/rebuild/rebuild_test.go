package rebuild

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// A patch makes the text that it was made for, of whatever the two are.
func TestPatch(t *testing.T) {
	var maker patcher
	patch := func(from, to []byte) []byte {
		p, _ := maker.patch(nil, from, to, math.MaxInt)
		return p
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "line of words that repeats\n", `"cache_control":{"type":"ephemeral"}`, "x", strings.Repeat("0123456789", 9), ""}), 0, 12)
		from := strings.Join(words.Draw(t, "from"), "")
		to := strings.Join(words.Draw(t, "to"), "")
		p := patch([]byte(from), []byte(to))
		got, ok := patched([]byte(from), p, 1<<20)
		if !ok || string(got) != to {
			t.Fatalf("%q became %q by %q, %v; want %q", from, got, p, ok, to)
		}
		limit := rapid.IntRange(0, 2*len(p)).Draw(t, "limit")
		if short, ok := maker.patch([]byte("before"), []byte(from), []byte(to), limit); ok != (len(p) < limit) || ok && string(short) != "before"+string(p) {
			t.Fatalf("a patch of %d bytes with a limit of %d is %q, %v", len(p), limit, short, ok)
		}
		if _, ok := patched([]byte(from), p, len(to)-1); ok && len(to) > 0 && len(from) >= len(to) {
			t.Fatal("a limit was exceeded")
		}
	})
	long := strings.Repeat("a line that is the same\n", 4000)
	if p := patch([]byte(`{"content":"`+long+`","cache_control":1}`), []byte(`{ "cache":2, "content":"`+long+`"}`)); len(p) > 120 {
		t.Errorf("a patch of two ends has %d bytes", len(p))
	}
}

// The parts of a body are the body, whether its messages are known or not.
func TestCut(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","system":[{"text":"s"}],"messages":[{"role":"user"},{"role":"assistant"} , 3],"tools":[1,2],"x":1.10}`,
		`{ "tools" : [ ] , "messages" : [ {"a":[1]} ,
			{"b":2} ] }`,
		`{"messages":[{"a":1}, {"a":1}, {"a":2}],"instructions":"i"}`,
		`{"messages":"a question","system":null}`,
		`{"messages":[]}`, `{"other":[1]}`, `{"system":1,"system":2,"messages":[1],"messages":[2]}`,
		`{"metadata":{"user_id":""},"messages":[{"metadata":{"user_id":"stays: it is a message"}}],"tools":[{"name":"login","input_schema":{"properties":{"password":{"type":"string"}}}}],"max_tokens":5}`,
	} {
		p := Cut([]byte(body), "messages", nil, nil)
		got, err := join(p.Frame, p.System, p.Tools, &list{elements: p.Elements, gaps: p.gaps})
		if err != nil || string(got) != body {
			t.Errorf("%s became %s, %v", body, got, err)
		}
		if len(p.Elements) == 0 {
			continue
		}
		var at []rawjson.Span
		from := 0
		for _, e := range p.Elements {
			start := from + bytes.Index([]byte(body[from:]), e)
			at = append(at, rawjson.Span{Start: start, End: start + len(e)})
			from = start + len(e)
		}
		if strings.Count(body, "messages") > 1 {
			continue
		}
		again := Cut([]byte(body), "messages", at, nil)
		if !bytes.Equal(again.Frame, p.Frame) || !bytes.Equal(again.System, p.System) || !bytes.Equal(again.Tools, p.Tools) {
			t.Errorf("%s is cut in another way if its messages are known: %+v, %+v", body, again, p)
		}
	}
}

// A body that is not a JSON object is not described: what to remove is not known.
func TestCutNoObject(t *testing.T) {
	for _, body := range []string{`[]`, `{`, `{"system":1,"messages":[1,2`, ``} {
		if p := Cut([]byte(body), "messages", nil, nil); p != nil {
			t.Errorf("%s was cut into %+v", body, p)
		}
	}
}

// Credentials and names of users are in no part of a body, whatever they are in.
func TestRedact(t *testing.T) {
	for body, want := range map[string]string{
		`{"user":"ann","messages":[{"role":"user"}],"metadata":{"key":["a",{"b":"c"},7]}}`:                                                                 `{"user":R,"messages":[{"role":"user"}],"metadata":{"key":[R,{"b":R},R]}}`,
		`{"messages":[1],"mcp_servers":[{"url":"http://a","authorization_token":"t"}],"max_tokens":9,"prompt_cache_key":"k"}`:                              `{"messages":[1],"mcp_servers":[{"url":"http://a","authorization_token":R}],"max_tokens":9,"prompt_cache_key":"k"}`,
		`{"tools":[{"type":"mcp","authorization":"a","headers":{"X-Any":"b"}},{"parameters":{"properties":{"user":{"type":"string"}}}}],"messages":[1,2]}`: `{"tools":[{"type":"mcp","authorization":R,"headers":{"X-Any":R}},{"parameters":{"properties":{"user":{"type":"string"}}}}],"messages":[1,2]}`,
		`{"data_sources":[{"parameters":{"authentication":{"key":"a"}}},{"x":{"Api-Key":"b","key":"c"}}],"messages":[1]}`:                                  `{"data_sources":[{"parameters":{"authentication":{"key":R}}},{"x":{"Api-Key":R,"key":R}}],"messages":[1]}`,
		`{"messages":[1],"x":` + strings.Repeat("[", 70) + `"deep"` + strings.Repeat("]", 70) + `}`:                                                        `{"messages":[1],"x":` + strings.Repeat("[", 64) + "R" + strings.Repeat("]", 64) + `}`,
	} {
		want = strings.ReplaceAll(want, "R", string(placeholder))
		if got := Redact([]byte(body), "messages"); string(got) != want {
			t.Errorf("%s became\n%s, want\n%s", body, got, want)
		}
		p := Cut([]byte(body), "messages", nil, nil)
		got, err := join(p.Frame, p.System, p.Tools, &list{elements: p.Elements, gaps: p.gaps})
		if err != nil || string(got) != want || p.sum != sumOf(got, nil) {
			t.Errorf("%s is cut as\n%s, want\n%s (%v)", body, got, want, err)
		}
	}
}

// memory is a session of which requests are described.
type memory struct {
	log      Records
	contents map[furl.Digest][]byte
	lists    *Lists
}

func newMemory() *memory { return &memory{contents: make(map[furl.Digest][]byte)} }

func (m *memory) add(body furl.Body) {
	n := furl.Seq(len(m.log))
	m.log = append(m.log, furl.Record{Seq: n + 1, Parent: n, At: time.Time{}, Body: body})
}

func (m *memory) say(raw string) { m.add(&furl.Message{Raw: []byte(raw)}) }

func (m *memory) content(d furl.Digest) ([]byte, error) {
	if c, ok := m.contents[d]; ok {
		return c, nil
	}
	return nil, errors.New("no such content")
}

// exchange describes a request and returns the bytes that this stores.
func (m *memory) exchange(received, sent string) int {
	r := Cut([]byte(received), "messages", nil, nil)
	var s *Parts
	if sent != received {
		s = Cut([]byte(sent), "messages", nil, r.Separator)
	}
	at := furl.Seq(len(m.log) + 1)
	p, contents, lists := Describe(m.log, at, m.lists, r, s)
	n := len(p.Received) + len(p.Sent)
	for _, c := range contents {
		if d := furl.DigestOf(c); m.contents[d] == nil {
			m.contents[d] = slices.Clone(c)
			n += len(c)
		}
	}
	m.lists = lists
	m.add(&furl.Exchange{Request: p})
	return n
}

func body(format string, elements []string) string {
	return fmt.Sprintf(format, strings.Join(elements, ","))
}

const plain = `{"model":"m","system":"You help.","messages":[%s],"tools":[{"name":"read"}]}`

// A request that only adds messages adds a few bytes, also where a client moves
// its cache mark and writes answers in its own way, and where furl hides
// something.
func TestSizes(t *testing.T) {
	m := newMemory()
	var theirs, ours []string
	for n := range 40 {
		question := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}]}`, fmt.Sprint("question ", n, strings.Repeat(" words", 100)))
		if n > 0 { // the mark moves
			theirs[len(theirs)-2] = strings.Replace(theirs[len(theirs)-2], `,"cache_control":{"type":"ephemeral"}`, "", 1)
			ours[len(ours)-2] = theirs[len(theirs)-2]
		}
		m.say(question)
		theirs, ours = append(theirs, question), append(ours, question)
		if n == 20 {
			ours[0] = `{"role":"user","content":"hidden"}`
		}
		sent := body(plain, theirs)
		if n >= 20 {
			sent = strings.Replace(body(plain, ours), `{"name":"read"}`, `{"name":"read"},{"name":"memory"}`, 1)
		}
		stored := m.exchange(body(plain, theirs), sent)
		if limit := 60; n > 0 && n != 20 && stored > limit {
			t.Errorf("request %d stores %d bytes, want at most %d", n, stored, limit)
		}
		answer := fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}]}`, fmt.Sprint("answer ", n, strings.Repeat(" phrases", 100)))
		m.say(answer)
		answer = strings.Replace(answer, `{"role":"assistant","content"`, `{"content"`, 1)
		theirs, ours = append(theirs, answer[:len(answer)-1]+`,"role":"assistant"}`), append(ours, answer[:len(answer)-1]+`,"role":"assistant"}`)
	}
}

// Whatever a client sends and furl makes of it, both are rebuilt to the byte,
// also if the lists of the exchange before are read from the log, or are none.
func TestBodies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct{ received, sent string }
		m := newMemory()
		want := make(map[furl.Seq]pair)
		long := strings.Repeat("a long text that repeats, ", 40)
		element := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf(`{"role":"user","content":%q}`, rapid.SampledFrom([]string{"a", "b", "c", long, long + "d", "e" + long, strings.Repeat(long, 30)}).Draw(t, "text"))
		})
		change := func(elements []string) []string {
			out := slices.Clone(elements)
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				i := rapid.IntRange(0, len(out)).Draw(t, "at")
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					out = slices.Insert(out, i, element.Draw(t, "new"))
				case 1:
					if i < len(out) {
						out = slices.Delete(out, i, i+1)
					}
				case 2:
					if i < len(out) {
						out[i] = strings.Replace(out[i], `"role"`, ` "x":1 , "role"`, 1)
					}
				case 3:
					if i < len(out) {
						out[i] = element.Draw(t, "other")
					}
				}
			}
			return out
		}
		formats := []string{plain, `{"messages":[%s]}`, `{"tools":[],"messages": [ %s ] }`, `{"messages":[%s],"instructions":"other"}`}
		format := formats[0]
		var list []string
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			for range rapid.IntRange(0, 3).Draw(t, "fresh") {
				e := element.Draw(t, "element")
				list = append(list, e)
				if rapid.Bool().Draw(t, "logged") {
					m.say(e)
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "other format") == 0 {
				format = rapid.SampledFrom(formats).Draw(t, "format")
			}
			list = change(list)
			p := pair{received: body(format, list)}
			if p.sent = p.received; rapid.Bool().Draw(t, "hides") {
				p.sent = body(rapid.SampledFrom([]string{format, formats[0]}).Draw(t, "sent"), change(list))
			}
			switch rapid.IntRange(0, 4).Draw(t, "base") {
			case 0:
				m.lists = nil
			case 1:
				if m.lists != nil {
					var err error
					if m.lists, err = Load(m.log, m.lists.At, m.content); err != nil {
						t.Fatal(err)
					}
				}
			}
			m.exchange(p.received, p.sent)
			want[furl.Seq(len(m.log))] = p
		}
		for at, p := range want {
			for sent, text := range map[bool]string{false: p.received, true: p.sent} {
				got, err := Body(m.log, at, sent, m.content)
				if err != nil || string(got) != text {
					t.Fatalf("record %d, sent %v: %v\n%s\nwant\n%s", at, sent, err, got, text)
				}
			}
			x := m.log[at-1].Body.(*furl.Exchange)
			for _, d := range References(&x.Request, m.content) {
				if _, err := m.content(d); err != nil {
					t.Fatalf("record %d refers to content %v, which was not stored", at, d)
				}
			}
		}
	})
}

// Contents that are missing, and records that were changed, are errors.
func TestBodyRefuses(t *testing.T) {
	m := newMemory()
	m.say(`{"role":"user","content":"one"}`)
	m.exchange(body(plain, []string{`{"role":"user","content":"one"}`}), body(plain, []string{`{"role":"user","content":"two"}`}))
	if _, err := Body(m.log, 1, false, m.content); !errors.Is(err, ErrNotRecorded) {
		t.Errorf("a message: %v", err)
	}
	if _, err := Body(m.log, 3, false, m.content); !errors.Is(err, ErrNotRecorded) {
		t.Errorf("no record: %v", err)
	}
	if _, err := Body(m.log, 2, true, m.content); err != nil {
		t.Error(err)
	}
	m.log[0].Body = &furl.Message{Raw: []byte(`{"role":"user","content":"six"}`)}
	if _, err := Body(m.log, 2, false, m.content); !errors.Is(err, ErrDiffers) {
		t.Errorf("a changed message: %v", err)
	}
	clear(m.contents)
	if _, err := Body(m.log, 2, false, m.content); err == nil {
		t.Error("a body without its contents")
	}
}

// Scripts of any bytes do no harm.
func FuzzBody(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x00\x00l\x01\x01"), []byte(""))
	f.Add([]byte("\x00\x01\x02\x03\x04\x01\x07c\x00\x01t\x01ag\x01,"), []byte("\x00\x01\x02\x03\x04\x00\x07"))
	f.Add([]byte("\x00\x01\x02\x03\x04\x01\x00pl\x03\x05\x01\x01\x01\x01a"), []byte("\x00\x01\x02\x03\x04\x00\x00r\x00\x01"))
	f.Fuzz(func(t *testing.T, received, sent []byte) {
		m := newMemory()
		m.say(`{"role":"user","content":"one"}`)
		m.exchange(body(plain, []string{`{"role":"user","content":"one"}`}), "")
		p := m.log[1].Body.(*furl.Exchange).Request
		p.Received, p.Sent = string(received), string(sent)
		m.add(&furl.Exchange{Request: p})
		for _, sent := range []bool{false, true} {
			_, _ = Body(m.log, 3, sent, m.content)
		}
		_, _ = Load(m.log, 3, m.content)
		References(&p, m.content)
	})
}

// BenchmarkDescribe is what recording the bodies of a request costs whose
// history has so many messages of 2 KB: it cuts the body, and compares its list
// with the one before.
func BenchmarkDescribe(b *testing.B) {
	for _, n := range []int{200, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := newMemory()
			var list []string
			for i := range n {
				e := fmt.Sprintf(`{"role":"user","content":%q}`, fmt.Sprint(i, strings.Repeat(" words", 330)))
				m.say(e)
				list = append(list, e)
			}
			text := body(plain, list)
			m.exchange(text, text)
			known := Cut([]byte(text), "messages", nil, nil)
			var at []rawjson.Span
			from := 0
			for _, e := range known.Elements {
				start := from + strings.Index(text[from:], string(e))
				at = append(at, rawjson.Span{Start: start, End: start + len(e)})
				from = start + len(e)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				p := Cut([]byte(text), "messages", at, nil)
				Describe(m.log, furl.Seq(len(m.log)+1), m.lists, p, nil)
			}
		})
	}
}

// Whatever a body is, its parts are what Redact returns.
func FuzzCut(f *testing.F) {
	for _, body := range []string{
		`{"messages":[{"a":1},{"b":2}],"tools":[{"headers":{"X":"secret"}}],"metadata":{"user_id":"u"},"system":"s"}`,
		`{"system":1,"system":2,"messages":[1],"messages":[2],"user":"a","user":{"b":["c"]}}`,
		`{"instructions":"i","Api_Key":"k","text":{"schema":{"token":"t"}}}`, `[]`, `{"a":`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p := Cut(body, "messages", nil, nil)
		if p == nil {
			return
		}
		got, err := join(p.Frame, p.System, p.Tools, &list{elements: p.Elements, gaps: p.gaps})
		if want := Redact(body, "messages"); err != nil || !bytes.Equal(got, want) || p.sum != sumOf(want, nil) {
			t.Fatalf("%q became %q, %v; want %q", body, got, err, want)
		}
	})
}
