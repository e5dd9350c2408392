package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestSetField(t *testing.T) {
	for _, test := range []struct{ obj, name, want string }{
		{`{}`, "a", `{"a":9}`},
		{`{ }`, "a", `{"a":9 }`},
		{`{"a":1}`, "a", `{"a":9}`},
		{`{"a" : [1, 2] ,"b":2}`, "a", `{"a" : 9 ,"b":2}`},
		{`{"a":1,"b":2,"a":3}`, "a", `{"a":1,"b":2,"a":9}`},
		{`{"\u0061":1}`, "a", `{"\u0061":9}`},
		{"{\r\n  \"b\": 1\r\n}", "a", "{\r\n  \"b\": 1,\"a\":9\r\n}"},
		{`{"b":{"a":1}}`, "a", `{"b":{"a":1},"a":9}`},
	} {
		got := string(Splice([]byte(test.obj), SetField([]byte(test.obj), test.name, []byte("9"))))
		if got != test.want {
			t.Errorf("set %s in %s: got %s, want %s", test.name, test.obj, got, test.want)
		}
	}
}

func TestField(t *testing.T) {
	for _, test := range []struct{ obj, value, edited string }{
		{`{"a": {"b":1} }`, `{"b":1}`, `{"a": {"b":2} }`},
		{`{"a":{"b":0},"a":{}}`, `{}`, `{"a":{"b":0},"a":{"b":2}}`}, // the last one counts
		{`{"a":[1]}`, `[1]`, `{"a":[1]}`},
		{`{"b":{"a":{}}}`, ``, `{"b":{"a":{}}}`},
		{`[{"a":{}}]`, ``, `[{"a":{}}]`},
		{``, ``, ``},
	} {
		if got := string(Field([]byte(test.obj), "a")); got != test.value {
			t.Errorf("a of %s: got %q, want %q", test.obj, got, test.value)
		}
		got := string(EditField([]byte(test.obj), "a", func(a []byte) []byte { return WithField(a, "b", []byte("2")) }))
		if got != test.edited {
			t.Errorf("b of a in %s: got %s, want %s", test.obj, got, test.edited)
		}
	}
}

func TestDropField(t *testing.T) {
	for _, test := range []struct{ obj, want string }{
		{`{}`, `{}`},
		{`{"b":1}`, `{"b":1}`},
		{`{"a":1}`, `{}`},
		{`{ "a" : 1 }`, `{  }`},
		{`{"a":1, "b":2}`, `{"b":2}`},
		{`{"b":2, "a":1}`, `{"b":2}`},
		{`{"a":0,"b":2 , "a":1,"c":{"a":1}}`, `{"b":2,"c":{"a":1}}`},
		{`[1]`, `[1]`},
	} {
		got := string(Splice([]byte(test.obj), DropField([]byte(test.obj), "a")))
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.obj, got, test.want)
		}
	}
}

func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"a" : 1.0, "b":[ {} , "x y\" " ] , "a":{"a":2}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if Check(b) != nil {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, b); err == nil && !bytes.Equal(Compact(nil, b), want.Bytes()) {
			t.Errorf("Compact(%q) = %q, want %q", b, Compact(nil, b), want.Bytes())
		}
		if NewReader(b).Kind() != '{' {
			return
		}
		set := Splice(b, SetField(b, "a", []byte("[9]")))
		dropped := Splice(b, DropField(b, "a"))
		var m map[string]json.RawMessage
		if err := json.Unmarshal(set, &m); err != nil || string(m["a"]) != "[9]" {
			t.Errorf("set in %q gives %q: %v", b, set, err)
		}
		m = nil
		if err := json.Unmarshal(dropped, &m); err != nil || m["a"] != nil {
			t.Errorf("drop in %q gives %q: %v", b, dropped, err)
		}
	})
}
