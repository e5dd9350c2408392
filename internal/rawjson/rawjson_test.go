package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var samples = []string{
	`{}`, `[]`, ` [ ] `, `""`, `0`, `-0`, `1.0`, `1e5`, `1E-5`, `0.10`, `123456789012345678901234567890`,
	`true`, `false`, `null`, "{\r\n\t\"a\" : [ 1 , 2 ]\r\n}", `{"a":1,"a":2}`, `"\ud800"`, `"\ud83d\ude00"`,
	`"\u0000\b\f\n\r\t\/\\\""`, "\"\xff\xfe\"", "\"é\xe2\x82\"", `"0123456789abcdef\n0123456789"`,
	`{"a":{"b":[[],[{}],[null,true,{"c":""}]]}}`,
	// invalid
	``, ` `, `{`, `[`, `[1,]`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{1:1}`, `[1 2]`, `01`, `1.`, `.5`, `1e`, `+1`, `-`, `tru`, `nul`,
	`truex`, `"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"a\nb\"", "\"01234567\x01\"", "\"\x1f", `{} {}`, `[}`, `{"a":]`, "\x00", `'a'`,
	"\ufeff{}",
}

func TestCheckAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range samples {
		if got, want := Check([]byte(s)) == nil, json.Valid([]byte(s)); got != want {
			t.Errorf("Check(%q) accepts: %v, encoding/json: %v", s, got, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Check(b)
		if got, want := err == nil, json.Valid(b); got != want {
			t.Fatalf("Check(%q) = %v, encoding/json: %v", b, err, want)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(b) {
				t.Fatalf("Check(%q) = %v, want an *Error inside the input", b, err)
			}
			return
		}
		// Walking piece by piece accepts the same and loses nothing.
		r := NewReader(b)
		walk(r)
		if err := r.End(); err != nil {
			t.Fatalf("walk(%q): %v", b, err)
		}
	})
}

func walk(r *Reader) {
	switch r.Kind() {
	case '{':
		for range r.Fields() {
			walk(r)
		}
	case '[':
		for range r.Elements() {
			walk(r)
		}
	case '"':
		r.String()
	default:
		r.Skip()
	}
}

func FuzzStrings(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Add("\u2028 <a&b> \x7f \xc3\x28 \xed\xa0\x80 é")
	f.Fuzz(func(t *testing.T, s string) {
		// Unquote decodes like encoding/json.
		var want string
		quoted := `"` + s + `"`
		if json.Unmarshal([]byte(quoted), &want) == nil {
			if got := Unquote([]byte(quoted)); got != want {
				t.Errorf("Unquote(%q) = %q, want %q", quoted, got, want)
			}
			if got, ok := NewReader([]byte(quoted)).String(); !ok || got != want {
				t.Errorf("String of %q = %q, %v, want %q", quoted, got, ok, want)
			}
			v := NewReader([]byte(quoted)).Value()
			if got := v.Text(); got != want || string(v.Inside()) != s {
				t.Errorf("Value of %q = %q inside %q, want %q", quoted, got, v.Inside(), want)
			}
		}
		// AppendString writes what encoding/json reads back.
		enc := AppendString([]byte("x"), s)[1:]
		var back string
		if err := json.Unmarshal(enc, &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") && back != string([]rune(s)) {
			t.Errorf("AppendString(%q) = %s, read back as %q, %v", s, enc, back, err)
		}
		if got := Unquote(enc); got != back {
			t.Errorf("Unquote(AppendString(%q)) = %q, want %q", s, got, back)
		}
	})
}

func TestAppendStringEscapesNoHTML(t *testing.T) {
	got := string(AppendString(nil, "<a href=\"x\">&\n\t\r\b\x00é\u2028</a>\\"))
	want := `"<a href=\"x\">&\n\t\r\u0008\u0000é` + "\u2028" + `</a>\\"`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReader(t *testing.T) {
	const doc = ` {"s":"a\nb","n":12,"big":123456789012345678901234567890,"f":1.0,"t":true,"x":null,
		"list":[1,{"k":"v"},"é"],"s":"last","\u006bey":7,"skipped":{"deep":[[[]]]}} `
	r := NewReader([]byte(doc))
	got := map[string]string{}
	var list []Span
	for key := range r.Fields() {
		switch string(key) {
		case "s":
			s, _ := r.String()
			got["s"] = s
		case "n", "key":
			n, ok := r.Int()
			got[string(key)] = fmt.Sprint(n, ok)
		case "big", "f":
			n, ok := r.Int()
			got[string(key)] = fmt.Sprint(n, ok)
		case "t", "x":
			v, ok := r.Bool()
			got[string(key)] = fmt.Sprint(v, ok)
		case "list":
			for range r.Elements() {
				list = append(list, r.Skip())
			}
		}
	}
	if err := r.End(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"s": "last", "n": "12 true", "key": "7 true", "f": "0 false", "t": "true true", "x": "false false"}
	delete(got, "big")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if len(list) != 3 || string(list[1].Of([]byte(doc))) != `{"k":"v"}` {
		t.Errorf("list spans %v", list)
	}
}

func TestReaderLeavesLoopsEarly(t *testing.T) {
	r := NewReader([]byte(`{"a":[[1,2,3],[4,5,6]],"b":{"c":1,"d":2}}`))
	first := func() int {
		for range r.Elements() {
			for range r.Elements() {
				n, _ := r.Int()
				return n
			}
		}
		return 0
	}
	var keys []string
	n := 0
	for key := range r.Fields() {
		keys = append(keys, string(key))
		if string(key) == "a" {
			n = first()
			continue
		}
		for range r.Fields() {
			break
		}
	}
	if err := r.End(); err != nil || n != 1 || fmt.Sprint(keys) != "[a b]" {
		t.Errorf("n %d, keys %v, err %v", n, keys, err)
	}
}

func TestReaderErrors(t *testing.T) {
	for _, test := range []struct {
		doc  string
		read func(*Reader)
		want string
	}{
		{`[1,2]`, func(r *Reader) {
			for range r.Fields() {
			}
		}, "JSON at offset 0: expected an object"},
		{` {}`, func(r *Reader) {
			for range r.Elements() {
			}
		}, "JSON at offset 1: expected an array"},
		{`{"a":1 "b":2}`, walk, "JSON at offset 7: expected ',' or '}'"},
		{`{"a":[1,{"b":tru}]}`, walk, "JSON at offset 13: expected true"},
		{"{\"a\":\"x\ny\"}", walk, "JSON at offset 7: control character in a string"},
		{`{"a":"x`, walk, "JSON at offset 5: unterminated string"},
		{`{} x`, walk, "JSON at offset 3: unexpected bytes after the value"},
		{``, walk, "JSON at offset 0: expected a value, found the end"},
	} {
		r := NewReader([]byte(test.doc))
		test.read(r)
		if err := r.End(); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.doc, err, test.want)
		}
	}
}

func TestDepth(t *testing.T) {
	nest := func(n int) []byte {
		return []byte(strings.Repeat(`[`, n) + strings.Repeat(`]`, n))
	}
	if err := Check(nest(MaxDepth)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	err := Check(nest(MaxDepth + 1))
	if want := "JSON at offset 10000: nested deeper than 10000 levels"; err == nil || err.Error() != want {
		t.Errorf("over the limit: %v, want %s", err, want)
	}
	if err := Check(bytes.Repeat([]byte(`{"a":`), 1_000_000)); err == nil {
		t.Error("a million open objects: no error")
	}
	r := NewReader(nest(MaxDepth + 1))
	walk(r)
	if err := r.End(); err == nil {
		t.Error("walked over the limit: no error")
	}
}

func TestSplice(t *testing.T) {
	b := []byte("0123456789")
	if got := Splice(b, nil); &got[0] != &b[0] {
		t.Error("no edits: a copy")
	}
	got := string(Splice(b, []Edit{{Span{0, 0}, []byte("a")}, {Span{2, 4}, nil}, {Span{5, 6}, []byte("bcd")}, {Span{10, 10}, []byte("e")}}))
	if want := "a014bcd6789e"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestListTable(t *testing.T) {
	const doc = `[ 10 , 11,  12 ,13 ]`
	n := func(s string) Item { return Item{Index: -1, New: []byte(s)} }
	k := func(i int) Item { return Item{Index: i} }
	for _, test := range []struct {
		items []Item
		want  string
	}{
		{[]Item{k(0), k(1), k(2), k(3)}, doc},
		{[]Item{k(1), k(2), k(3)}, `[ 11,  12 ,13 ]`},
		{[]Item{k(0), k(2), k(3)}, `[ 10,  12 ,13 ]`},
		{[]Item{k(0), k(1), k(2)}, `[ 10 , 11,  12 ]`},
		{[]Item{k(2)}, `[ 12 ]`},
		{[]Item{n("a"), k(0), k(3)}, `[ a,10 ,13 ]`},
		{[]Item{k(0), n("a"), n("b"), k(2), n("c")}, `[ 10,a,b,  12,c ]`},
		{[]Item{k(0), {Index: 1, New: []byte("x")}, k(3)}, `[ 10 , x ,13 ]`},
		{[]Item{n("a")}, `[ a ]`},
		{nil, `[]`},
	} {
		got := string(Splice([]byte(doc), List(Span{1, len(doc) - 1}, spans(t, []byte(doc)), test.items)))
		if got != test.want {
			t.Errorf("%v: got %s, want %s", test.items, got, test.want)
		}
	}
	if got := string(Splice([]byte(`[ ]`), List(Span{1, 2}, nil, []Item{n("a"), n("b")}))); got != `[a,b]` {
		t.Errorf("into an empty list: %s", got)
	}
	if edits := List(Span{1, 2}, nil, nil); edits != nil {
		t.Errorf("empty to empty: %v", edits)
	}
}

func spans(t *testing.T, b []byte) (out []Span) {
	r := NewReader(b)
	for range r.Elements() {
		out = append(out, r.Skip())
	}
	if err := r.End(); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return out
}

// Any selection of old elements, replaced or not, with new ones between,
// gives the list that a decoder would see.
func TestListProperty(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	space := func() string { return [...]string{"", " ", "\n\t", "\r\n"}[rnd.IntN(4)] }
	for range 5000 {
		old := rnd.IntN(6)
		var doc strings.Builder
		doc.WriteString("[" + space())
		for i := range old {
			if i > 0 {
				doc.WriteString(space() + "," + space())
			}
			doc.WriteString(fmt.Sprint(i))
		}
		doc.WriteString(space() + "]")
		var items []Item
		var want []int
		for i := 0; i <= old; i++ {
			for rnd.IntN(4) == 0 {
				items = append(items, Item{Index: -1, New: fmt.Append(nil, 100+len(items))})
				want = append(want, 100+len(items)-1)
			}
			if i == old || rnd.IntN(3) == 0 {
				continue
			}
			it := Item{Index: i}
			value := i
			if rnd.IntN(3) == 0 {
				value = 200 + i
				it.New = fmt.Append(nil, value)
			}
			items = append(items, it)
			want = append(want, value)
		}
		out := Splice([]byte(doc.String()), List(Span{1, len(doc.String()) - 1}, spans(t, []byte(doc.String())), items))
		var got []int
		if err := json.Unmarshal(out, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q with %v gives %q, want %v (%v)", doc.String(), items, out, want, err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	line := string(AppendString(nil, strings.Repeat("if err != nil {\n\treturn fmt.Errorf(\"read %s: %w\", name, err)\n}\n", 50)))
	doc := []byte(`{"messages":[` + strings.Repeat(`{"role":"user","content":[{"type":"text","text":`+line+`}]},`, 300) + `null]}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(doc); err != nil {
			b.Fatal(err)
		}
	}
}
