package furl

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestJSONStrings(t *testing.T) {
	tests := []struct {
		value string
		want  []string
	}{
		{``, nil},
		{`{}`, nil},
		{`{"n":12,"b":true,"x":null}`, nil},
		{`{"path":"a/b.go","old" : "x\ny"}`, []string{"a/b.go", "x\ny"}},
		{`{"key":{"key":["one",{"key":"two"},[["three"]]]}}`, []string{"one", "two", "three"}},
		{`"free form\ttext"`, []string{"free form\ttext"}},
		{`{"a":"","b":"\"quoted\" \\","c":"é\u00e9"}`, []string{"", `"quoted" \`, "éé"}},
		{`{"a":"key\":","b":"{\"inner\":\"json\"}"}`, []string{`key":`, `{"inner":"json"}`}},
		{`{"a":"cut of`, []string{"cut of"}},
		{`{"a":"bad \q escape"}`, []string{`bad \q escape`}},
		{`"`, []string{""}},
		{`"\`, []string{`\`}},
	}
	for _, tt := range tests {
		if got := slices.Collect(jsonStrings(tt.value)); !slices.Equal(got, tt.want) {
			t.Errorf("jsonStrings(%q) = %q, want %q", tt.value, got, tt.want)
		}
	}
}

func TestTexts(t *testing.T) {
	call := Block{Kind: KindCall, Name: "Edit", Args: []byte(`{"file":"a.go","n":1}`)}
	result := Block{Kind: KindResult, Text: "a\nb"}
	tests := []struct {
		name  string
		shown ShownBlock
		want  []string
	}{
		{"call", ShownBlock{Block: &call}, []string{"a.go"}},
		{"edited call", ShownBlock{Block: &call, By: 3, Text: `{"file":"hid\"den"}`}, []string{`hid"den`}},
		{"result", ShownBlock{Block: &result}, []string{"a\nb"}},
		{"edited result", ShownBlock{Block: &result, By: 3, Text: `"gone"`}, []string{`"gone"`}},
		{"image", ShownBlock{Block: &Block{Kind: KindImage}}, nil},
	}
	for _, tt := range tests {
		if got := slices.Collect(tt.shown.Texts()); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What the decoder of the standard library finds in valid JSON is found.
func FuzzJSONStrings(f *testing.F) {
	for _, seed := range []string{`{"a":["b",{"c":"d\n"}],"e":"\ud83d\ude00\ud800"}`, `"x"`, `[ "a" , "b" : `, `{"a" :"b"}`, "\"\xff\\n\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := slices.Collect(jsonStrings(value))
		if !json.Valid([]byte(value)) {
			return
		}
		dec := json.NewDecoder(strings.NewReader(value))
		var want []string
		var nest []byte // { before a key, } before its value, [
		for {
			tok, err := dec.Token()
			if err != nil {
				break
			}
			isKey := len(nest) > 0 && nest[len(nest)-1] == '{'
			if d, ok := tok.(json.Delim); ok && (d == ']' || d == '}') {
				nest = nest[:len(nest)-1]
				continue
			}
			if len(nest) > 0 && nest[len(nest)-1] != '[' {
				nest[len(nest)-1] ^= '{' ^ '}'
			}
			switch tok := tok.(type) {
			case json.Delim:
				nest = append(nest, byte(tok))
			case string:
				if !isKey {
					want = append(want, tok)
				}
			}
		}
		for i := range got {
			got[i] = string([]rune(got[i])) // as the decoder replaces what is not UTF-8
		}
		if !slices.Equal(got, want) {
			t.Errorf("jsonStrings(%q) = %q, want %q", value, got, want)
		}
	})
}

// bytesCounter counts one token per byte, which makes sums easy to follow.
type bytesCounter struct{}

func (bytesCounter) Count(text string) int  { return len(text) }
func (bytesCounter) CountMedia(m Media) int { return 1000 }

func TestMeasure(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    Block
		want int
	}{
		{"text", Block{Text: "12345"}, 9},
		{"call", Block{Kind: KindCall, Name: "Read", Args: []byte(`{"a":1}`)}, 15},
		{"image", Block{Kind: KindImage, Media: make([]Media, 2)}, 2004},
		{"thinking in full", Block{Kind: KindThinking, Text: "1234567890", Signature: 300}, 14},
		{"thinking in summary", Block{Kind: KindThinking, Text: "1234567890", Signature: 2480}, 404},
		{"thinking withheld", Block{Kind: KindThinking, Signature: 1380}, 204},
		{"a short signature", Block{Kind: KindThinking, Signature: 8}, 4},
		{"encrypted content", Block{Kind: KindOpaque, Text: "123", Signature: 400}, 107},
	} {
		m := &Message{Blocks: []Block{tt.b}}
		m.Measure(bytesCounter{})
		if got := m.Tokens(); got != tt.want {
			t.Errorf("%s: got %d tokens, want %d", tt.name, got, tt.want)
		}
		m.Measure(nil) // counted once in its life
	}
}
