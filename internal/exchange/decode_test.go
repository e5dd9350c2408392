package exchange_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

var decodeCodecs = []protocol.Codec{anthropic.Codec, openai.Chat, openai.Responses}

// sameRequest compares what Decode gives with what the codec itself does.
func sameRequest(t *testing.T, sessions *session.Sessions, codec protocol.Codec, body []byte) *protocol.Request {
	t.Helper()
	want, wantErr := codec.DecodeRequest(bytes.Clone(body))
	got, err := exchange.Of(sessions).Decode(codec, body)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Fatalf("%s: %v, want %v\n%s", codec.Format(), err, wantErr, body)
	}
	if err != nil {
		return nil
	}
	plain := *got
	plain.Chains, plain.Outline, plain.Sums = nil, nil, nil
	if !reflect.DeepEqual(want, &plain) {
		t.Fatalf("%s: -codec +Decode\n%s\n%s", codec.Format(), cmp.Diff(want, &plain), body)
	}
	var chain furl.Digest
	for i := range want.Messages {
		if chain = want.Messages[i].Extend(chain); got.Chains[i] != chain {
			t.Fatalf("%s: chain %d is another\n%s", codec.Format(), i, body)
		}
		m := &got.Messages[i]
		if len(got.Sums) > 0 && got.Sums[i] != rawjson.Sum(m.Raw) {
			t.Fatalf("%s: the hash of message %d is another\n%s", codec.Format(), i, body)
		}
		if len(m.Raw) > 0 && &m.Raw[0] != &body[got.Offsets[i]] {
			t.Fatalf("%s: message %d does not stand in the body", codec.Format(), i)
		}
	}
	return got
}

// elements of a conversation, in each format.
func decodeElements(format furl.Format, r *rand.Rand, i int) []string {
	words := strings.Repeat(fmt.Sprintf(`w%d \u00e9\n`, r.IntN(1000)), 1+r.IntN(30))
	id := fmt.Sprintf("call_%d", i)
	switch format {
	case furl.FormatChat:
		return []string{
			fmt.Sprintf(`{"role":"assistant","content":"%s","tool_calls":[{"id":"%s","type":"function","function":{"name":"f","arguments":"{\"n\":%d}"}}]}`, words, id, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"%s","content":"%s"}`, id, words),
		}
	case furl.FormatResponses:
		return []string{
			fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"abc%d"}`, i, i),
			fmt.Sprintf(`{"type":"custom_tool_call","call_id":"%s","name":"f","input":"%s"}`, id, words),
			fmt.Sprintf(`{"type":"custom_tool_call_output","call_id":"%s","output":"%s"}`, id, words),
		}
	}
	return []string{
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"%s","signature":"s"},{"type":"tool_use","id":"%s","name":"f","input":{"n":9007199254740993,"s":"%s"}}]}`, words, id, words),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","content":"%s"}]}`, id, words),
	}
}

func decodeHead(format furl.Format) (head string, list []string) {
	switch format {
	case furl.FormatChat:
		return `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[`,
			[]string{`{"role":"system","content":"Be kind."}`, `{"role":"developer","content":"Be brief."}`, `{"role":"user","content":"Go."}`}
	case furl.FormatResponses:
		return `{"model":"m","instructions":"Be kind.","input":[`, []string{`{"role":"developer","content":"Be brief."}`, `{"role":"user","content":"Go."}`}
	}
	return `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"Be kind."}],"messages":[`, []string{`{"role":"user","content":"Go."}`}
}

// Histories that grow, with marks that move on, that are cut back, go on
// otherwise, and come in turns with those of other sessions, decode as if each
// were the first.
func TestDecodeMore(t *testing.T) {
	for _, codec := range decodeCodecs {
		sessions, err := session.New(inmem.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		type conversation struct{ list []string }
		head, lead := decodeHead(codec.Format())
		var all [3]conversation
		for i := range all {
			all[i].list = append(append([]string(nil), lead...), fmt.Sprintf(`{"role":"user","content":"I am %d."}`, i))
		}
		outlines := 0
		for turn := range 200 {
			c := &all[r.IntN(len(all))]
			switch k := r.IntN(10); {
			case k == 0 && len(c.list) > len(lead)+4: // cut back
				c.list = c.list[:len(lead)+1+r.IntN(len(c.list)-len(lead)-1)]
			case k == 1 && len(c.list) > len(lead)+2: // an old element changes
				i := len(lead) + 1 + r.IntN(len(c.list)-len(lead)-1)
				c.list[i] = strings.Replace(c.list[i], `"w`, `"v`, 1)
			default:
				c.list = append(c.list, decodeElements(codec.Format(), r, turn)...)
			}
			list := append([]string(nil), c.list...)
			if codec.Format() == furl.FormatAnthropic {
				last := len(list) - 1
				list[last] = strings.TrimSuffix(list[last], "}]}") + `,"cache_control":{"type":"ephemeral"}}]}`
				if !json.Valid([]byte(list[last])) {
					list[last] = c.list[last]
				}
			}
			between := [...]string{",", " , ", ",\n"}[turn%50/20%3]
			body := head + strings.Join(list, between) + `],"stream":true}`
			if req := sameRequest(t, sessions, codec, []byte(body)); req != nil && req.Outline != nil {
				outlines++
			}
		}
		if outlines < 100 {
			t.Errorf("%s: %d of 200 requests were decoded by what is new in them", codec.Format(), outlines)
		}
	}
}

// What is not JSON, or has its list twice, is not taken for what it begins with.
func TestDecodeMoreOfWhatIsOdd(t *testing.T) {
	for _, codec := range decodeCodecs {
		head, list := decodeHead(codec.Format())
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 4 {
			list = append(list, decodeElements(codec.Format(), r, i)...)
		}
		name := map[furl.Format]string{furl.FormatResponses: "input"}[codec.Format()]
		if name == "" {
			name = "messages"
		}
		known := head + strings.Join(list, ",")
		for _, end := range []string{
			`]}`, ` ] , "stream":true}`, `,]}`, `,,{"role":"user","content":"x"}]}`, `{"role":"user","content":"x"}]}`, `]`, ``, `,`, `}`, `],`, `]}x`,
			`],"` + name + `":[]}`, `],"` + name + `":[{"role":"user","content":"other"}]}`, `],"` + name + `":null}`,
			`],"` + strings.Replace(name, name[:1], fmt.Sprintf(`\u%04x`, name[0]), 1) + `":[]}`,
			`,{"role":"user","content":"x"}],"model":"other"}`, `,{"role":"user","content":"x"}],"metadata":[1]}`, `,{"role":"user","content":"x"}],"tools":[{"name":"x"}]}`,
			`,{"role":"user","content":"x"}],"` + name + `":[{"role":"user","content":"y"}]}`, `,{"role":"user","content":"x"} ,{"role":"user","content":"y"} ]}`, `,5]}`, `,{"role":"user","content":{"` + name + `":[]}}]}`,
		} {
			sessions, err := session.New(inmem.New(), nil)
			if err != nil {
				t.Fatal(err)
			}
			sameRequest(t, sessions, codec, []byte(known+`]}`))
			sameRequest(t, sessions, codec, []byte(known+end))
		}
	}
}

// Tenants and formats share nothing, and what is kept does not hold on to
// bodies.
func TestDecodeApart(t *testing.T) {
	sessions, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	head, list := decodeHead(furl.FormatAnthropic)
	list = append(list, decodeElements(furl.FormatAnthropic, rand.New(rand.NewPCG(1, 2)), 1)...)
	body := []byte(head + strings.Join(list, ",") + `]}`)
	sameRequest(t, sessions, anthropic.Codec, body)
	if req := sameRequest(t, sessions.For("other"), anthropic.Codec, bytes.Clone(body)); req.Outline != nil {
		t.Error("what one tenant sent is known for another's")
	}
	if req := sameRequest(t, sessions, openai.Chat, bytes.Clone(body)); req.Outline != nil {
		t.Error("what was sent in one format is known for another")
	}
	again := bytes.Clone(body)
	for i := range body {
		body[i] = 'x' // a request's body is its own once it is over
	}
	if req := sameRequest(t, sessions, anthropic.Codec, again); req.Outline == nil {
		t.Error("the same body is not known")
	}
}

func FuzzDecodeMore(f *testing.F) {
	for i, codec := range decodeCodecs {
		head, list := decodeHead(codec.Format())
		list = append(list, decodeElements(codec.Format(), rand.New(rand.NewPCG(1, 2)), 1)...)
		f.Add(byte(i), []byte(head+strings.Join(list, ",")), []byte(`]}`), []byte(`,`+list[len(list)-1]+`],"stream":true}`))
	}
	f.Fuzz(func(t *testing.T, format byte, known, end, next []byte) {
		codec := decodeCodecs[int(format)%len(decodeCodecs)]
		sessions, err := session.New(inmem.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sameRequest(t, sessions, codec, append(bytes.Clone(known), end...))
		sameRequest(t, sessions, codec, append(bytes.Clone(known), next...))
	})
}
