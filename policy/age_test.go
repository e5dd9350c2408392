package policy

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

func TestQuotes(t *testing.T) {
	const line = "cannot open /etc/hosts: no" // 26 characters
	for _, tt := range []struct {
		name, result, user string
		want               bool
	}{
		{"nothing", "", "", false},
		{"a whole line", "x\n" + line + "\ny", "Why " + line + "?", true},
		{"a line folded", "x\n  cannot  open\t/etc/hosts: no \ny", line, true},
		{"half a line", "x\n" + line + " such file\ny", line, false},
		{"inside longer words", "x\n" + line + "\ny", line + "de", false},
		{"a line of nineteen", "x\nabc def ghi jkl mno\ny", "abc def ghi jkl mno", false},
		{"a line of twenty", "x\nabc def ghi jkl mnop\ny", "abc def ghi jkl mnop", true},
		{"forty characters", "a1 b2 c3 d4 e5 f6 g7 h8 i9 j0 k1 l2 m3 n4 o5", "x b2 c3 d4 e5 f6 g7 h8 i9 j0 k1 l2 m3 n4 y", true},
		{"thirty-nine", "a1 b2 c3 d4 e5 f6 g7 h8 i9 j0 k1 l2 m3 n4 o5", "xb2 c3 d4 e5 f6 g7 h8 i9 j0 k1 l2 m3 n4y", false},
		{"over a line break", "one two three four five\nsix seven eight nine ten", "three four five six seven eight nine ten", true},
		{"a ruler", strings.Repeat("=", 60), strings.Repeat("=", 60), false},
		{"other letters", "größer als erwartet, und zwar überall, für alle Größen", "s: größer als erwartet, und zwar überall, für", true},
		{"a line of other letters", "x\nübermäßig größer, wöl\ny", "übermäßig größer, wöl!", true},
	} {
		if got := quoted(t, tt.result, tt.user); got != tt.want {
			t.Errorf("%s: quoted %v, want %v", tt.name, got, tt.want)
		}
	}
	const long = "0a1b2c3d4e5f6g7h8i9j-A.B.C.D.E.F.G.H.I.J+zyxwvutsrqponmlkjihgfedcba%0123456789"
	for from := range len(long) - quoteChars {
		if !quoted(t, "> "+long, "is("+long[from:from+quoteChars]+")right?") {
			t.Errorf("forty characters from %d on are not found", from)
		}
		if quoted(t, "> "+long, "is("+long[from:from+quoteChars-1]+")right?") {
			t.Errorf("thirty-nine characters from %d on are found", from)
		}
	}
}

// quoted asks whether a user message quotes a result before it.
func quoted(t testing.TB, result, user string) bool {
	s := newSession(t)
	s.step("read", result)
	s.say(furl.RoleUser, user)
	v := s.view()
	var picked []Result
	eachResult(v, s.budget(0), func(r *Result) bool { picked = append(picked, *r); return true })
	return len(spareQuoted(picked)) == 0
}

// TestQuotesNaive compares with a search that tries everything.
func TestQuotesNaive(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "bb", "ccc3", "größe", "--", "\n", " ", "d-5", "the same words", "and a whole line of it\n"})
	texts := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 20, 60).Draw(t, "words"), rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
	})
	rapid.Check(t, func(rt *rapid.T) {
		result, user := texts.Draw(rt, "result"), texts.Draw(rt, "user")
		if rapid.Bool().Draw(rt, "quotes") {
			from := rapid.IntRange(0, len(result)/2).Draw(rt, "from")
			to := rapid.IntRange(from, min(len(result), from+70)).Draw(rt, "to")
			user += strings.ToValidUTF8(result[from:to], "") + texts.Draw(rt, "behind")
		}
		if got, want := quoted(t, result, user), quotedNaive(result, user); got != want {
			rt.Fatalf("result %q\nuser   %q\nquoted %v, want %v", result, user, got, want)
		}
	})
}

func quotedNaive(result, user string) bool {
	r, u := []rune(lexer.Fold(result)), lexer.Fold(user)
	for i := 0; i+quoteChars <= len(r); i++ {
		if run := string(r[i : i+quoteChars]); says(run) && strings.Contains(u, run) {
			return true
		}
	}
	for l := range strings.Lines(result) {
		l = lexer.Fold(l)
		if utf8.RuneCountInString(l) < quoteLine {
			continue
		}
		for at := range len(u) {
			if utf8.RuneStart(u[at]) && holdsLine(u, at, l) {
				return true
			}
		}
	}
	return false
}

func TestClipped(t *testing.T) {
	t.Run("A3 head, note and tail are within the limit", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-zäß]{1,9}[ \n]`), 0, 400).Draw(t, "text"), "")
			limit := rapid.IntRange(20, 300).Draw(t, "limit")
			var c furl.Counter
			if rapid.Bool().Draw(t, "words") {
				c = words{}
			}
			got := clipped(text, limit, c)
			if got == text {
				return
			}
			if !utf8.ValidString(got) {
				t.Fatalf("%q is not UTF-8", got)
			}
			if n := count(c, got); n > limit {
				t.Fatalf("%d tokens, more than %d: %q", n, limit, got)
			}
			head, rest, ok := strings.Cut(got, "[content clipped - ")
			var missing, all int
			fmt.Sscanf(rest, "%d of %d", &missing, &all)
			_, tail, _ := strings.Cut(rest, " characters left out here]")
			tail = strings.TrimPrefix(tail, "\n")
			switch {
			case !ok || all != utf8.RuneCountInString(text):
				t.Fatalf("the note is wrong: %q", got)
			case !strings.HasPrefix(text, strings.TrimSuffix(head, "\n")) || !strings.HasSuffix(text, tail):
				t.Fatalf("head %q or tail %q is not the text's", head, tail)
			case missing > all || missing < all-utf8.RuneCountInString(got):
				t.Fatalf("%d of %d are missing in %q", missing, all, got)
			}
		})
	})
	t.Run("a text without any break", func(t *testing.T) {
		text := strings.Repeat("x", 1<<20)
		if got := clipped(text, 2000, nil); len(got) > 8000 || len(got) < 7000 {
			t.Errorf("left %d bytes for 2000 tokens", len(got))
		}
	})
}

// TestErrorsStay decodes errors from each wire format: the rules of what an
// errors are in package wire/openai and in Anthropic's flag.
func TestErrorsStay(t *testing.T) {
	long := strings.Repeat("word ", 200)
	for _, tt := range []struct {
		name         string
		codec        protocol.Codec
		call, result string
		want         bool
	}{
		{"A6 is_error", anthropic.Codec,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"bash","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"` + long + `"}]}`, true},
		{"A6 no error", anthropic.Codec,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"bash","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"error: ` + long + `"}]}`, false},
		{"A6 exit code in the wrapper", openai.Responses,
			`{"type":"function_call","call_id":"c","name":"shell","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c","output":"Exit code: 2\nWall time: 1 seconds\nOutput:\n` + long + `"}`, true},
		{"A6 success false", openai.Chat,
			`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"shell","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c","content":"{\"success\":false,\"output\":\"` + long + `\"}"}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t)
			for _, raw := range []string{tt.call, tt.result} {
				m, err := tt.codec.DecodeMessage([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				s.add(m)
			}
			for range 6 {
				s.step("bash", "ok")
			}
			plan := s.plan(must(t, "tool-age"), s.budget(0))
			if stays := len(plan.Reductions) == 0; stays != tt.want {
				t.Errorf("stays whole: %v, want %v", stays, tt.want)
			}
		})
	}
}

// TestToolAgeAge follows one result through a session.
func TestToolAgeAge(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	p := must(t, "tool-age")
	for n := range 12 {
		s.step("read", fmt.Sprintf("result %d %s", n, text(120)))
		s.plan(p, s.budget(0))
		v := s.view()
		for i := range v.Units {
			u := &v.Units[i]
			if u.Kind != furl.UnitStep {
				continue
			}
			age := v.Steps - u.Step
			if hidden := u.Blocks[1].By != 0; hidden != (age > 5) {
				t.Errorf("A2 A9 a result %d steps old is hidden: %v", age, hidden)
			}
			if age > 5 && u.Blocks[1].Text != "[content truncated - 6 steps ago]" {
				t.Errorf("A2 a result %d steps old shows %q", age, u.Blocks[1].Text)
			}
		}
	}
	t.Run("A2 length and age are recorded", func(t *testing.T) {
		for red := range s.log.State().Reductions() {
			in := red.Items[0].Show.(furl.In)
			if !strings.HasPrefix(in.Note, "read, ") || !strings.HasSuffix(in.Note, " chars, 6 steps old") {
				t.Errorf("the note is %q", in.Note)
			}
		}
	})
}
