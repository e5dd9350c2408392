package furl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestCanonicalJSON(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"b":1,"a":{"d":[1,2 , 3],"c":null}}`, `{"a":{"c":null,"d":[1,2,3]},"b":1}`},
		{" {\n} ", `{}`},
		{`[ ]`, `[]`},
		{`{"a":1.0,"b":12345678901234567890,"c":1e3}`, `{"a":1.0,"b":12345678901234567890,"c":1e3}`},
		{`"\u0041\n\/<"`, `"A\u000a/<"`},
		{`{"x":1,"cache_control":{"type":"ephemeral"},"a":[{"cache_control":1}]}`, `{"a":[{}],"x":1}`},
		{`{"a":2,"b":0,"a":1}`, `{"a":2,"a":1,"b":0}`},
		{`{"a":1`, `{"a":1`},
		{`{"a" 1}`, `{"a" 1}`},
		{`1 2`, `1 2`},
		{`tru`, `tru`},
		{``, ``},
	} {
		if got := string(new(canonicalizer).canonical([]byte(tt.in))); got != tt.want {
			t.Errorf("canonical form of %s is\n%s, want\n%s", tt.in, got, tt.want)
		}
	}
	deep := strings.Repeat("[", 100000) + strings.Repeat("]", 100000)
	if got := string(new(canonicalizer).canonical([]byte(deep))); got != deep {
		t.Error("a value nested too deep was not returned as it is")
	}
}

// FuzzCanonicalJSON: the canonical form means the same, and is its own
// canonical form.
func FuzzCanonicalJSON(f *testing.F) {
	f.Add([]byte(`{"b":[1,{"a":"\ud83d\ude00\u0000"}],"a":-1.5e10}`))
	f.Add([]byte(`{"a":{"cache_control":1},"a":"x"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		once := new(canonicalizer).canonical(in)
		if twice := new(canonicalizer).canonical(once); string(twice) != string(once) {
			t.Fatalf("canonical form of %q is %q, and of that %q", in, once, twice)
		}
		if strings.Contains(string(in), "cache_control") || !json.Valid(in) {
			return
		}
		var a, b any
		if json.Unmarshal(in, &a) == nil && json.Unmarshal(once, &b) == nil {
			if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
				t.Fatalf("canonical form of %q is %q: another value", in, once)
			}
		}
	})
}

// The chain of a conversation is the same however a client groups, marks and
// spaces it, and another when it says something else.
func TestChain(t *testing.T) {
	call := func(args string) Block {
		return Block{Kind: KindCall, ID: "c1", Name: "read", Args: json.RawMessage(args)}
	}
	chain := func(msgs ...*Message) Digest {
		var d Digest
		for _, m := range msgs {
			d = m.Extend(d)
		}
		return d
	}
	say := func(role Role, blocks ...Block) *Message { return &Message{Role: role, Blocks: blocks} }
	text := func(s string) Block { return Block{Kind: KindText, Text: s} }
	base := chain(say(RoleUser, text("a"), text("b")), say(RoleAssistant, text("c"), call(`{"x":1,"y":2}`)), say(RoleUser, Block{Kind: KindResult, ID: "c1", Text: "long"}))

	same := map[string]Digest{
		"one message split in two": chain(say(RoleUser, text("a")), say(RoleUser, text("b")), say(RoleAssistant, text("c"), call(`{"x":1,"y":2}`)), say(RoleUser, Block{Kind: KindResult, ID: "c1", Text: "long"})),
		"arguments in other order": chain(say(RoleUser, text("a"), text("b")), say(RoleAssistant, text("c"), call(`{ "y":2, "x":1 }`)), say(RoleUser, Block{Kind: KindResult, ID: "c1", Text: "long"})),
		"result cleared by client": chain(say(RoleUser, text("a"), text("b")), say(RoleAssistant, text("c"), call(`{"x":1,"y":2}`)), say(RoleTool, Block{Kind: KindResult, ID: "c1", Text: "[cleared]"})),
		"thinking and cache marks": chain(say(RoleUser, text("a"), Block{Kind: KindText, Text: "b", CacheMark: true}), say(RoleAssistant, Block{Kind: KindThinking, Text: "hm"}, text("c"), call(`{"x":1,"y":2}`)), say(RoleUser, Block{Kind: KindResult, ID: "c1", Text: "long"})),
	}
	for name, d := range same {
		if d != base {
			t.Errorf("%s changes the chain", name)
		}
	}
	other := map[string]Digest{
		"other words":   chain(say(RoleUser, text("a"), text("B")), say(RoleAssistant, text("c"), call(`{"x":1,"y":2}`)), say(RoleUser, Block{Kind: KindResult, ID: "c1", Text: "long"})),
		"joined words":  chain(say(RoleUser, text("ab")), say(RoleAssistant, text("c"), call(`{"x":1,"y":2}`)), say(RoleUser, Block{Kind: KindResult, ID: "c1", Text: "long"})),
		"other call id": chain(say(RoleUser, text("a"), text("b")), say(RoleAssistant, text("c"), call(`{"x":1,"y":2}`)), say(RoleUser, Block{Kind: KindResult, ID: "c2", Text: "long"})),
		"other number":  chain(say(RoleUser, text("a"), text("b")), say(RoleAssistant, text("c"), call(`{"x":1.0,"y":2}`)), say(RoleUser, Block{Kind: KindResult, ID: "c1", Text: "long"})),
	}
	for name, d := range other {
		if d == base {
			t.Errorf("%s does not change the chain", name)
		}
	}
}
