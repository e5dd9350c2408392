package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/policy"
)

// GeminiMasking are the options of the preset gemini-masking, which masks old tool
// results like Gemini CLI: before every request, once enough of them are outside the
// newest 50,000 tokens.
type GeminiMasking struct {
	// Protect is how many tokens of results stay, and Minimum how many the others
	// must have; otherwise nothing is masked. If zero, 50,000 and 30,000. Sizes
	// are a quarter of the characters of the result as JSON.
	Protect int `json:"protect,omitempty"`
	Minimum int `json:"minimum,omitempty"`
	// ExcludeTools are the tools whose results stay. If nil, those that load a
	// skill, save a memory, ask the user, or begin and end a plan.
	ExcludeTools []string `json:"exclude_tools,omitempty"`
}

func (o GeminiMasking) Validate() error {
	return validate(option{"protect", o.Protect}, option{"minimum", o.Minimum})
}

func (o GeminiMasking) Policy(name string, _ policy.Settings) furl.Policy {
	if o.ExcludeTools == nil {
		o.ExcludeTools = slices.Concat(skillTools, noteTools, askTools, planTools)
	}
	return &policy.Pipeline{Label: name, Stages: []policy.Stage{&geminiMask{o}}}
}

// geminiMask is the stage of that preset. The newest step is not masked: Gemini CLI
// masks before it adds the results that it is about to send.
type geminiMask struct{ o GeminiMasking }

func (*geminiMask) Name() string { return "mask" }

func (g *geminiMask) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	mask := policy.Mask{
		Keep:   func(r *policy.Result) bool { return isOneOf(r.Tool(), g.o.ExcludeTools...) },
		Choose: g.choose,
		Text:   func(r *policy.Result) string { return maskedOutput(r, b.Recall) },
		Reason: "tool results outside the newest of them",
	}
	return mask.Reduce(ctx, v, b)
}

func (g *geminiMask) choose(_ furl.Budget, may []policy.Result) []policy.Result {
	total, prunable := 0, 0
	var out []policy.Result
	for i := len(may) - 1; i >= 0; i-- {
		r := &may[i]
		n := (utf8.RuneCountInString(r.Tool()) + utf8.RuneCountInString(responseJSON(r, ""))) / 4
		if total += n; total > cmp.Or(g.o.Protect, 50_000) {
			prunable += n
			out = append(out, *r)
		}
	}
	if prunable < cmp.Or(g.o.Minimum, 30_000) {
		return nil
	}
	slices.Reverse(out)
	return out
}

// responseJSON is a result as Gemini's API has it: a JSON object with the output or
// the error, on one line if indent is empty.
func responseJSON(r *policy.Result, indent string) string {
	key, begin, colon, end := "output", "{", ":", "}"
	if r.Block.Block.Error {
		key = "error"
	}
	if indent != "" {
		begin, colon, end = "{\n"+indent, ": ", "\n}"
	}
	return begin + `"` + key + `"` + colon + string(rawjson.AppendString(nil, r.Block.Block.Text)) + end
}

// maskedOutput is what Gemini CLI shows of a masked result: its beginning and end, and
// where the whole is. The handle replaces the path of the file, if the model can use
// it.
func maskedOutput(r *policy.Result, recall bool) string {
	var preview string
	if isOneOf(r.Tool(), shellTools...) {
		preview = shellPreview(r.Block.Block.Text)
	} else {
		preview = responseJSON(r, "  ")
		if runes := []rune(preview); len(runes) > 500 {
			preview = string(runes[:250]) + "\n... [TRUNCATED] ...\n" + string(runes[len(runes)-250:])
		}
	}
	where := "Output too large."
	if recall {
		where += " Full output available at: " + policy.Template("{handle}")(r)
	}
	return "<tool_output_masked>\n" + preview + "\n\n" + where + "\n</tool_output_masked>"
}

// shellPreview is the first and the last ten lines of a command's output.
func shellPreview(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= 20 {
		return text
	}
	return strings.Join(lines[:10], "\n") + fmt.Sprintf("\n\n... [%d lines omitted] ...\n\n", len(lines)-20) + strings.Join(lines[len(lines)-10:], "\n")
}
