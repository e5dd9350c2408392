package rawjson

import (
	"fmt"
	"strings"
	"testing"
)

// Fields outside the gap are read, and an offset plus its shift is the offset
// in the whole object.
func TestFieldsAround(t *testing.T) {
	obj := `{"a":1,"list":[{"inside":true},{"a":9}],"b":[2,3]}`
	from := strings.Index(obj, `{"inside"`)
	to := strings.Index(obj, `],"b"`)
	got := ""
	FieldsAround([]byte(obj), from, to, func(name string, r *Reader, shift int) {
		r.Kind() // moves to the value
		at := r.Pos() + shift
		got += fmt.Sprintf("%s=%c ", name, obj[at])
	})
	if want := "a=1 list=[ b=[ "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, gap := range [][2]int{{-1, 3}, {5, 4}, {3, len(obj) + 1}} {
		FieldsAround([]byte(obj), gap[0], gap[1], func(name string, _ *Reader, _ int) {
			t.Errorf("gap %v: field %s, want none", gap, name)
		})
	}
	FieldsAround([]byte(`{"a":[`), 6, 6, func(string, *Reader, int) {}) // truncated: no panic
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
