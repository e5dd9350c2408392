package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
)

// shortened gives what the stage shows for a call with these arguments, and
// whether it shows something else at all.
func shortened(t testing.TB, st *Shorten, tool, args string) (string, bool) {
	s := newSession(t)
	s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: "a", Name: tool, Args: []byte(args)}}})
	s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "a", Text: "ok"}}})
	s.step("bash", "ok")
	b := s.budget(0)
	b.Counter = nil
	s.plan(&Pipeline{Label: "shorten", Stages: []Stage{st}}, b)
	sb := s.view().Messages[0].Blocks[0]
	return sb.Words(), sb.By != 0
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("some words ", 100)
	word := func(what string) string {
		return "[shortened after the call: " + what + "; original kept as furl:1.0]"
	}
	for _, tt := range []struct{ name, args, want string }{
		{"X5 bytes around it stay", `{ "path" : "a.go","big":12345678901234567890, "text":"` + long + `" ,"n":1.0,"u":"\u00e9"}`,
			`{ "path" : "a.go","big":12345678901234567890, "text":"` + word(`1100 characters, beginning \"some words some words some words some words some words some…\"`) + `" ,"n":1.0,"u":"\u00e9"}`},
		{"X5 nested", `{"a":[{"b":"` + long + `"},["x"]]}`, `{"a":[{"b":"` + word(`1100 characters, beginning \"some words some words some words some words some words some…\"`) + `"},["x"]]}`},
		{"X5 equal keys", `{"a":"` + long + `","a":"x"}`, `{"a":"` + word(`1100 characters, beginning \"some words some words some words some words some words some…\"`) + `","a":"x"}`},
		{"X5 a free-form text", `"*** Begin Patch\n*** Add File: a.go\n` + long + `"`, `"` + word("1135 characters in 3 lines, a patch of a.go") + `"`},
		{"X5 a long key is no text", `{"` + long + `":1}`, ""},
		{"X5 long numbers stay", `{"n":` + strings.Repeat("1", 1000) + `}`, ""},
		{"X5 broken JSON stays", `{"a":"` + long + `"`, ""},
		{"X5 too little to gain", `{"a":"` + long[:450] + `"}`, ""},
		{"X5 too deep", strings.Repeat("[", 200) + `"` + long + `"` + strings.Repeat("]", 200), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, changed := shortened(t, &Shorten{}, "write", tt.args)
			if changed != (tt.want != "") || changed && got != tt.want {
				t.Errorf("got %v\n%s\nwant\n%s", changed, got, tt.want)
			}
		})
	}
}

// A script is described by its calls, and the names are those of the texts in it.
func TestShortenScript(t *testing.T) {
	args := `"const p = '*** Begin Patch\\n*** Add File: a.go\\n+\\tparseToken\\n` + strings.Repeat("some words ", 100) + `'; text(await tools.apply_patch(p))"`
	got, _ := shortened(t, &Shorten{NameTokens: 20}, "exec", args)
	if want := `"[shortened after the call: 1198 characters of a script: apply_patch a.go, with the names parseToken; original kept as furl:1.0]"`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestShortenKeeps(t *testing.T) {
	s := newSession(t)
	big := json.RawMessage(fmt.Sprintf(`{"text":%q}`, text(300)))
	for i := range 4 {
		id := fmt.Sprint(i)
		s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: id, Name: "write", Args: big}}})
		s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Text: "ok"}}})
	}
	s.add(&furl.Restoration{Spans: []furl.Span{{First: furl.Pos{Msg: 1}, Last: furl.Pos{Msg: 1}}}, Hold: furl.Keep})
	p := &Pipeline{Label: "shorten", Stages: []Stage{&Shorten{KeepSteps: 2}}}
	s.plan(p, s.budget(0))
	for i, want := range []bool{false, true, false, false} { // kept, old, and the newest two
		if got := s.view().Messages[2*i].Blocks[0].By != 0; got != want {
			t.Errorf("call %d is shortened: %v, want %v", i, got, want)
		}
	}
	if plan := s.plan(p, s.budget(0)); len(plan.Reductions) != 0 {
		t.Error("shortened again")
	}
}

// skeleton is a JSON value without its strings.
func skeleton(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = skeleton(v[k])
		}
	case []any:
		for i := range v {
			v[i] = skeleton(v[i])
		}
	case string:
		return "text"
	}
	return v
}

func checkShortened(args, got string) error {
	if !json.Valid([]byte(got)) {
		return fmt.Errorf("%s is no JSON", got)
	}
	if kind := strings.TrimSpace(args)[0]; strings.TrimSpace(got)[0] != kind {
		return fmt.Errorf("%s begins with another character than %s", got, args)
	}
	var want, have any
	for _, d := range []struct {
		text string
		into *any
	}{{args, &want}, {got, &have}} {
		dec := json.NewDecoder(strings.NewReader(d.text))
		dec.UseNumber()
		if err := dec.Decode(d.into); err != nil {
			return err
		}
	}
	a, _ := json.Marshal(skeleton(want))
	b, _ := json.Marshal(skeleton(have))
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s has another shape than %s", b, a)
	}
	return nil
}

func TestShortenShape(t *testing.T) {
	t.Run("X5 always JSON of the same shape", func(t *testing.T) {
		str := rapid.OneOf(
			rapid.StringN(0, 30, -1),
			rapid.Map(rapid.StringN(1, 30, -1), func(s string) string { return strings.Repeat(s, 40) }),
		)
		var value *rapid.Generator[any]
		value = rapid.Deferred(func() *rapid.Generator[any] {
			return rapid.OneOf(
				rapid.Map(str, func(s string) any { return s }),
				rapid.Just[any](json.Number("1.0")), rapid.Just[any](nil), rapid.Just[any](true),
				rapid.Map(rapid.SliceOfN(value, 0, 4), func(l []any) any { return l }),
				rapid.Map(rapid.MapOfN(rapid.StringN(0, 9, -1), value, 0, 4), func(m map[string]any) any { return m }),
			)
		})
		rapid.Check(t, func(rt *rapid.T) {
			args, err := json.Marshal(map[string]any{"args": value.Draw(rt, "value")})
			if err != nil {
				rt.Fatal(err)
			}
			got, _ := shortened(t, &Shorten{LongerThan: 60, MinGain: 1, NameTokens: 20}, "write", string(args))
			if err := checkShortened(string(args), got); err != nil {
				rt.Fatal(err)
			}
		})
	})
}

func FuzzShorten(f *testing.F) {
	f.Add(`{"path":"a.go","content":"package a, and more than that"}`)
	f.Add(`"*** Begin Patch\n*** Update File: a_b.go\n"`)
	f.Add(`[{"a":["\ud800 and some more words here"]},1e9,"\u00e9"]`)
	f.Fuzz(func(t *testing.T, args string) {
		if !json.Valid([]byte(args)) {
			if long := longTexts([]byte(args), 10); long != nil {
				t.Fatalf("%q is no JSON and has long texts", args)
			}
			return
		}
		got, _ := shortened(t, &Shorten{LongerThan: 10, MinGain: 1, NameTokens: 20}, "write", args)
		if err := checkShortened(args, got); err != nil {
			t.Fatal(err)
		}
	})
}
