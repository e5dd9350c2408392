package transcript

import (
	"strings"
	"testing"
)

func TestProbeKinds(t *testing.T) {
	tests := []struct {
		name, data string
		kind       byte
		objects    int
	}{
		{"empty", "", 't', 0},
		{"text", "# a chat\n\nhello", 't', 0},
		{"an object", `{"a":1,"b":{"c":2}}`, '{', 1},
		{"an object over several lines", "{\n \"a\": 1,\n \"b\": []\n}\n", '{', 1},
		{"a truncated object", "{\n \"a\": 1,\n \"b\": [{\n", '{', 1},
		{"an array", `[{"a":1},2,{"b":2}]`, '[', 2},
		{"a truncated array", `[{"a":1},{"a":2},{"a"`, '[', 3},
		{"lines", "{\"a\":1}\n{\"a\":2}\n", 'l', 2},
		{"lines with CR and a BOM", "\xef\xbb\xbf{\"a\":1}\r\n{\"a\":2}\r\n", 'l', 2},
		{"lines, the first truncated", "\"x\":1}\n{\"a\":2}\n", 'l', 1},
		{"lines, the first broken", "{\"a\":\n{\"a\":2}\n", 'l', 1},
		{"lines after NULs", "\x00\x00\x00\n{\"a\":2}\n{\"a\":2}\n", 'l', 2},
		{"two objects on one line", `{"a":1}{"a":2}`, 'l', 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProbe([]byte(tt.data))
			if p.kind != tt.kind || len(p.objects) != tt.objects {
				t.Errorf("kind %c with %d objects, want %c with %d", p.kind, len(p.objects), tt.kind, tt.objects)
			}
			if p.is(tt.kind) != (tt.objects > 0) {
				t.Errorf("is(%c) is %v with %d objects", tt.kind, p.is(tt.kind), tt.objects)
			}
		})
	}
}

func TestObjectFields(t *testing.T) {
	o := newProbe([]byte(`{"s":"a\"b","n":12,"f":1.5,"t":true,"z":null,"o":{"x":"y"},"s2":1,"n":13}`)).objects[0]
	if o.str("s") != `a"b` || o.str("s2") != "" || o.str("none") != "" {
		t.Errorf("strings %q %q %q", o.str("s"), o.str("s2"), o.str("none"))
	}
	if o.num("n") != 13 || o.num("f") != 0 || o.num("s") != 0 {
		t.Errorf("numbers %d %d %d, want 13, the last of two, 0 and 0", o.num("n"), o.num("f"), o.num("s"))
	}
	if !o.flag("t") || o.flag("z") || o.flag("s") || o.object("o").str("x") != "y" || len(o.object("s")) != 0 {
		t.Error("flags or objects are wrong")
	}
	if !o.has("s", "z") || o.has("s", "none") || o.kind("o") != '{' || o.kind("none") != 0 {
		t.Error("has or kind is wrong")
	}
	if p := newProbe([]byte(`[{"a":1},{"b":1}]`)); !p.any(func(o object) bool { return o.has("b") }) {
		t.Error("any must check all objects")
	}
}

func TestRecords(t *testing.T) {
	long := `{"long":"` + strings.Repeat("x", 200) + `"}`
	in := &input{bounds: unbounded, maxLine: 100, rec: &Recording{}, data: []byte(strings.Join([]string{
		`{"n":1}`,             // 1
		``,                    // 2
		`{"n":2}{"n":3}`,      // 3
		`[1,2]`,               // 4 skipped
		long,                  // 5 skipped
		"\x00\x00{\"n\":4}\r", // 6
		`{"n":5} rest`,        // 7 rest skipped
		`{"n":6`,              // 8 skipped, truncated
	}, "\n"))}
	var got []string
	for line, raw := range in.records() {
		got = append(got, string(rune('0'+line))+string(raw))
	}
	want := `1{"n":1} 3{"n":2} 3{"n":3} 6{"n":4} 7{"n":5}`
	if s := strings.Join(got, " "); s != want {
		t.Errorf("records %s, want %s", s, want)
	}
	var lines []int
	for _, s := range in.rec.Skipped {
		lines = append(lines, s.Line)
		if s.Reason == "" {
			t.Errorf("line %d is skipped without a reason", s.Line)
		}
	}
	if len(lines) != 4 || lines[0] != 4 || lines[1] != 5 || lines[2] != 7 || lines[3] != 8 {
		t.Errorf("skipped lines %v, want 4 5 7 8", lines)
	}
}
