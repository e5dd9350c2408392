package rawjson

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	use := func(field string) Use {
		switch field {
		case "id":
			return Ignored
		case "signature":
			return Secret
		}
		return Word
	}
	deep := strings.Repeat(`{"a":`, maxWordsDepth+1) + `"too deep"` + strings.Repeat("}", maxWordsDepth+1)
	for _, tt := range []struct {
		value  string
		most   int
		text   string
		secret int
	}{
		{`{"id":"x","text":"one","list":["two\n",3,{"signature":"abcd","more":"three"}]}`, 100, "one\ntwo\n\nthree", 4},
		{`["id","ab"]`, 100, "id\nab", 0},
		{`["abcdef","gh"]`, 5, "abcd", 0},
		{`["é"]`, 2, "", 0}, // no half character
		{deep, 100, "", 0},
		{`7`, 100, "", 0},
	} {
		w := Words{Most: tt.most, Use: use}
		if text, secret := w.Read([]byte(tt.value)); text != tt.text || secret != tt.secret {
			t.Errorf("%.60s: %q, %d, want %q, %d", tt.value, text, secret, tt.text, tt.secret)
		}
	}
}

func TestObjectOf(t *testing.T) {
	for text, want := range map[string]string{`{"a":1}`: `{"a":1}`, `[1]`: `{"in":"[1]"}`, `{"a":`: `{"in":"{\"a\":"}`, " \n": "{}", "x": `{"in":"x"}`} {
		if got := string(ObjectOf(text, "in")); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
