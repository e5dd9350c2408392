package rawjson

import (
	"slices"
	"testing"
)

// FieldsOf yields the requested fields, and reports those that parsers could
// read in two ways.
func TestFieldsOf(t *testing.T) {
	names := NewNames("role", "content", "tasks", "id")
	for _, tt := range []struct {
		in        string
		fields    []string
		ambiguous string
	}{
		{`{}`, nil, ""},
		{`{"role":1,"other":2,"content":3}`, []string{"role", "content"}, ""},
		{`{"other":1,"other":2,"Other":3,"":4,"":5}`, nil, ""},
		{`{"role":1,"role":2}`, []string{"role", "role"}, "role"},
		{`{"role":1,"Role":2}`, []string{"role"}, "role"},
		{`{"ROLE":1}`, nil, "role"},
		{`{"r\u006fle":1,"role":2}`, []string{"role", "role"}, "role"},
		{`{"tasks":1,"taſks":2}`, []string{"tasks"}, "tasks"},
		{`{"tasks":1,"tas\u212as":2}`, []string{"tasks"}, "tasks"},
		{`{"ıd":1,"id":2}`, []string{"id"}, ""}, // a dotless i folds to itself
		{`{"id":{"id":1,"id":2},"x":{"role":1,"role":2}}`, []string{"id"}, ""},
	} {
		r := NewReader([]byte(tt.in))
		var got []string
		for key := range r.FieldsOf(names) {
			got = append(got, string(key))
		}
		if r.End() != nil || !slices.Equal(got, tt.fields) || r.Ambiguous() != tt.ambiguous {
			t.Errorf("%s gives %q, ambiguous %q, %v; want %q, %q", tt.in, got, r.Ambiguous(), r.Err(), tt.fields, tt.ambiguous)
		}
	}
}

// A loop that ends early leaves the Reader at the end of the object.
func TestFieldsOfEndsEarly(t *testing.T) {
	r := NewReader([]byte(`{"a":1,"b":2,"a":3}`))
	for range r.FieldsOf(NewNames("a", "b")) {
		break
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
}

func TestNewNamesRefuses(t *testing.T) {
	for _, names := range [][]string{{"A"}, {"é"}, {"a", "a"}, make([]string, 65)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewNames(%q) did not panic", names)
				}
			}()
			NewNames(names...)
		}()
	}
}
