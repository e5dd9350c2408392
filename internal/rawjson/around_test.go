package rawjson

import (
	"fmt"
	"strings"
	"testing"
)

// All fields are read but the one with the gap, whatever it contains.
func TestFieldsAround(t *testing.T) {
	obj := `{"a":1,"list":[{"inside":true},{"a":9}],"b":[2,3]}`
	from := strings.Index(obj, `{"inside"`)
	to := strings.Index(obj, `],"b"`)
	for _, test := range []struct {
		obj  string
		gap  Span
		want string
	}{
		{obj, Span{from, to}, "a=1 b=[2,3] "},
		{obj[:from] + strings.Repeat("[", to-from) + obj[to:], Span{from, to}, "a=1 b=[2,3] "},
		{`{"a":"x", "b":2}`, Span{5, 8}, "b=2 "},
		{`{"a":{"b":[1]},"b":[1]}`, Span{11, 12}, "b=[1] "},
		{obj, Span{-1, 3}, ""},
		{obj, Span{5, 4}, ""},
		{obj, Span{3, len(obj) + 1}, ""},
		{`{"a":[`, Span{6, 6}, ""},
		{`{"a":1,"b":[`, Span{12, 12}, "a=1 "}, // truncated
	} {
		got := ""
		FieldsAround([]byte(test.obj), test.gap, func(name string, value Span) {
			got += fmt.Sprintf("%s=%s ", name, value.Of([]byte(test.obj)))
		})
		if got != test.want {
			t.Errorf("%s without %v: got %q, want %q", test.obj, test.gap, got, test.want)
		}
	}
}

func TestAppendElement(t *testing.T) {
	for list, want := range map[string]string{
		`[]`: `[9]`, `[ ]`: `[ 9]`, `[1]`: `[1,9]`, `["]" ]`: `["]" ,9]`, `{}`: "", `"[]"`: "", ``: "", `[`: "",
	} {
		got, ok := AppendElement([]byte(list), []byte("9"))
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s became %s (%v), want %s", list, got, ok, want)
		}
	}
}

func TestReplaced(t *testing.T) {
	for obj, want := range map[string]string{
		`{"a":1, "b":2}`: `{"a":9, "b":2}`, `{"b":2}`: `{"b":2}`, `[]`: `[]`,
	} {
		if got := Replaced([]byte(obj), "a", []byte("9")); string(got) != want {
			t.Errorf("%s became %s, want %s", obj, got, want)
		}
	}
}

func TestElements(t *testing.T) {
	if got := fmt.Sprintf("%s", Elements([]byte(`[1, {"a":[2]} ]`))); got != `[1 {"a":[2]}]` {
		t.Errorf("got %s", got)
	}
	if got := Elements([]byte(`{"a":[1]}`)); got != nil {
		t.Errorf("no list has elements %s", got)
	}
}
