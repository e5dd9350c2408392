package policy

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/toolscript"
)

// Shorten replaces long texts in the inputs of old calls, such as the contents
// of files that were written, by a short description (X5). Everything else in an
// input stays byte for byte: keys and their order, numbers, short texts. The
// result is JSON of the same shape: an object for an object, a string for the
// text of a free-form tool. Calls of the newest step, of a step with an open
// call, and calls that are kept, pinned or already replaced stay.
type Shorten struct {
	// KeepSteps is how many of the newest steps keep their inputs.
	KeepSteps int `json:"keep_steps,omitempty"`
	// LongerThan is the length in characters up to which a text stays. If zero,
	// 400.
	LongerThan int `json:"longer_than,omitempty"`
	// MinGain is how many counted tokens a call must get smaller by. If zero,
	// 50.
	MinGain int `json:"min_gain,omitempty"`
	// NameTokens is how many counted tokens the names listed in a description
	// may take. If zero, none are listed.
	NameTokens int `json:"name_tokens,omitempty"`
	// Keep, if not nil, reports which other calls stay.
	Keep func(u *furl.Unit, call *furl.ShownBlock) bool `json:"-"`
}

func (s *Shorten) validate() error {
	return validate(number("keep_steps", s.KeepSteps), number("longer_than", s.LongerThan), number("min_gain", s.MinGain), number("name_tokens", s.NameTokens))
}

// Name is "shorten".
func (s *Shorten) Name() string { return "shorten" }

// Reduce shortens all inputs that do not stay, in one reduction.
func (s *Shorten) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	red := &furl.Reduction{Stage: s.Name(), Reason: "long inputs of calls outside " + newest(max(1, s.KeepSteps), "step")}
	calls := s.pick(v)
	in := shortening{longer: cmp.Or(s.LongerThan, 400), gain: cmp.Or(s.MinGain, 50), recall: b.Recall, shown: newShownNames(v, calls)}
	in.room = func(int) nameBudget { return nameBudget{most: s.NameTokens} }
	for _, sb := range calls {
		if show, ok := in.call(sb, b.Counter); ok {
			red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: show})
		}
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	return red, nil
}

// pick returns the calls whose inputs may be shortened, oldest first.
func (s *Shorten) pick(v *furl.View) []*furl.ShownBlock {
	steps := v.Steps
	var calls []*furl.ShownBlock
	for i := range v.Units {
		u := &v.Units[i]
		if u.Kind != furl.UnitStep || u.Newest || u.Open {
			continue
		}
		if steps-u.Step < s.KeepSteps {
			break
		}
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			if sb.Block.Kind == furl.KindCall && sb.By == 0 && sb.Hold < furl.Keep && (s.Keep == nil || !s.Keep(u, sb)) {
				calls = append(calls, sb)
			}
		}
	}
	return calls
}

// shortening replaces the long texts in the inputs of calls.
type shortening struct {
	longer int // characters that a text may have and stay
	gain   int // counted tokens that must be saved in a call
	// brief leaves out what a text begins with.
	brief bool
	// recall says that the model can call recall tools.
	recall bool
	// room is what the names in a text of so many bytes may take.
	room  func(bytes int) nameBudget
	shown *shownNames
}

// call returns what to show in place of a call's input, if that saves enough.
func (s *shortening) call(sb *furl.ShownBlock, c furl.Counter) (furl.In, bool) {
	if sb.Tokens <= s.gain {
		return furl.In{}, false
	}
	args := sb.Block.Args
	long := longTexts(args, s.longer)
	if len(long) == 0 {
		return furl.In{}, false
	}
	edits := make([]rawjson.Edit, len(long))
	for i := range long {
		edits[i] = rawjson.Edit{Span: long[i].span, New: []byte(`""`)}
	}
	rest := namesIn((&furl.Block{Args: rawjson.Splice(args, edits)}).Texts())
	chars := 0
	for i, l := range long {
		what, texts := l.what(s.brief), slices.Values([]string{l.text})
		if toolscript.Has(sb.Block) {
			what, texts = l.what(true)+" of a script: "+target(sb.Block), toolscript.Texts(sb.Block)
		}
		var names []string
		if most := s.room(len(l.text)); most.most > 0 {
			names = s.shown.tell(texts, most, c, rest, namesIn(slices.Values([]string{what})))
		}
		edits[i].New = rawjson.AppendString(nil, shortenedText(what, names, keptAs(sb.Pos, s.recall)))
		chars += l.chars
	}
	in := furl.InPlace(sb.Block, string(rawjson.Splice(args, edits)), c)
	in.Note = fmt.Sprintf("%s, %d characters of its input", sb.Block.Name, chars)
	return in, sb.Tokens-in.Tokens >= s.gain
}

func namesIn(texts iter.Seq[string]) map[string]bool {
	names := make(map[string]bool)
	for text := range texts {
		for name := range lexer.Names(text) {
			names[name] = true
		}
	}
	return names
}

// shortenedText is shown in place of a long text in a call's input. Its wording
// makes clear that it is not something to write into a file.
func shortenedText(what string, names []string, kept string) string {
	if len(names) > 0 {
		what += ", with the names " + strings.Join(names, " ")
	}
	return "[shortened after the call: " + what + kept + "]"
}

// longText is a long string in a JSON value.
type longText struct {
	span  rawjson.Span
	text  string
	chars int
}

// maxBegin is how much of a text's first line is shown, in characters.
const maxBegin = 60

// what describes a text; a brief description leaves out how it begins.
func (l *longText) what(brief bool) string {
	what := fmt.Sprintf("%d characters", l.chars)
	if n := strings.Count(strings.TrimRight(l.text, "\n"), "\n") + 1; n > 1 && !brief {
		what += fmt.Sprintf(" in %d lines", n)
	}
	if files := patched(l.text); len(files) > 0 {
		return what + ", a patch of " + cut(strings.Join(files, ", "), maxTarget)
	}
	if begin := firstLine(l.text); begin != "" && !brief {
		what += fmt.Sprintf(", beginning %q", cut(begin, maxBegin))
	}
	return what
}

// maxNesting is how deep in an input texts are looked for.
const maxNesting = 100

// longTexts finds the strings, except keys, of more than so many characters in a
// JSON value. It returns none if the value is not valid JSON.
func longTexts(value []byte, most int) []longText {
	var long []longText
	var walk func(r *rawjson.Reader, depth int)
	walk = func(r *rawjson.Reader, depth int) {
		switch kind := r.Kind(); {
		case depth > maxNesting:
			r.Skip()
		case kind == '{':
			for range r.Fields() {
				walk(r, depth+1)
			}
		case kind == '[':
			for range r.Elements() {
				walk(r, depth+1)
			}
		default:
			span := r.Skip()
			if kind != '"' || span.Len() <= most {
				return
			}
			text := rawjson.Unquote(span.Of(value))
			if n := utf8.RuneCountInString(text); n > most {
				long = append(long, longText{span, text, n})
			}
		}
	}
	r := rawjson.NewReader(value)
	walk(r, 0)
	if r.End() != nil {
		return nil
	}
	return long
}
