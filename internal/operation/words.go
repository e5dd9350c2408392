package operation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/policy"
)

// Text says what was done, or with preview what would be, and what that means.
func (r *Result) Text(preview bool) string {
	if r.Nothing != "" {
		return r.Nothing + " Nothing changes."
	}
	head := r.Did
	if preview {
		head = "Would " + lowered(r.Title)
	}
	return strings.Join(append([]string{head + "."}, r.Effects...), " ")
}

// JSON returns a result for programs: Head, and the fields of Value beside it.
func (r *Result) JSON(c *Call) (json.RawMessage, error) {
	head := Head{Session: c.SessionKey().Session, DryRun: c.Preview, Text: r.Text(c.Preview), Notes: r.Notes}
	if r.Undo != nil {
		head.Undo = &undoJSON{r.Undo.Operation, r.Undo.Input}
	}
	out, err := json.Marshal(head)
	if err != nil || r.Value == nil {
		return out, err
	}
	more, err := json.Marshal(r.Value)
	if err != nil || string(more) == "{}" {
		return out, err
	}
	return slices.Concat(out[:len(out)-1], []byte{','}, more[1:]), nil
}

// PriceWords say what a change does to the price of the next requests.
type PriceWords struct {
	Size  string // of the next request, before and after
	Lines []string
	Free  bool // nothing is written to the cache again
}

// WordsOf says a price. model is the name of the session's model.
func WordsOf(p policy.Price, model string) *PriceWords {
	out := &PriceWords{Free: p.Rewrite == 0 || p.Expired || !p.Cached}
	change := p.After - p.Before
	if change == 0 {
		out.Size = fmt.Sprintf("The next request still has %s.", Tokens(p.Before))
	} else {
		out.Size = fmt.Sprintf("The next request: %s → %s tokens (%s).", numbers.Thousands(p.Before), numbers.Thousands(p.After), Signed(change))
	}
	switch {
	case !p.Cached:
		out.Lines = append(out.Lines, "The provider does not cache a prompt of this size: no cache to write again.")
	case p.Rewrite == 0:
		out.Lines = append(out.Lines, "The prompt cache stays valid.")
	case p.Expired:
		out.Lines = append(out.Lines, "The prompt cache has expired: no extra cost.")
	case p.Priced:
		out.Lines = append(out.Lines, fmt.Sprintf("It writes %s to the prompt cache again: %s once.", Tokens(p.Rewrite), Money(p.Once)))
	default:
		out.Lines = append(out.Lines, fmt.Sprintf("It writes %s to the prompt cache again.", Tokens(p.Rewrite)))
	}
	longer := "shorter"
	if change > 0 {
		longer = "longer"
	}
	switch {
	case change == 0:
	case !p.Priced:
		out.Lines = append(out.Lines, fmt.Sprintf("Later requests stay that much %s. Prices of %s are unknown.", longer, model))
	case p.PerRequest < 0:
		out.Lines = append(out.Lines, fmt.Sprintf("Each later request costs %s more.", Money(-p.PerRequest)))
	case p.PerRequest > 0:
		out.Lines = append(out.Lines, fmt.Sprintf("Each later request costs %s less.", Money(p.PerRequest)))
	}
	return out
}

// Signed returns a number with its sign.
func Signed(n int) string {
	if n > 0 {
		return "+" + numbers.Thousands(n)
	}
	return "−" + numbers.Thousands(-n)
}

// Tokens returns a number of tokens.
func Tokens(n int) string { return numbers.Count(n, "token") }

// Money returns an amount of dollars to the cent, and says so if it is less.
func Money(x float64) string {
	if x > 0 && x < 0.005 {
		return "less than $0.01"
	}
	return fmt.Sprintf("$%.2f", x)
}

// Sentence makes a sentence of an error's text.
func Sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(r)) + s[n:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

func lowered(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[n:]
}
