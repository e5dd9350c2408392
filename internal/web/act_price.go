package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
)

// priceSaid says what an action does to the price of the next requests.
type priceSaid struct {
	Size  string // of the next request, before and after
	Lines []string
	Free  bool // nothing is written to the cache again
}

// price says a price.
func (v *visit) price(p policy.Price) *priceSaid {
	out := &priceSaid{Free: p.Rewrite == 0 || p.Expired || !p.Cached}
	change := p.After - p.Before
	if change == 0 {
		out.Size = fmt.Sprintf("The next request still has %s tokens.", thousands(p.Before))
	} else {
		out.Size = fmt.Sprintf("The next request: %s → %s tokens (%s).", thousands(p.Before), thousands(p.After), signed(change))
	}
	switch {
	case !p.Cached:
		out.Lines = append(out.Lines, "The provider does not cache a prompt of this size: no cache to write again.")
	case p.Rewrite == 0:
		out.Lines = append(out.Lines, "The prompt cache stays valid.")
	case p.Expired:
		out.Lines = append(out.Lines, "The prompt cache has expired: no extra cost.")
	case p.Priced:
		out.Lines = append(out.Lines, fmt.Sprintf("It writes %s to the prompt cache again: %s once.", tokens(p.Rewrite), money(p.Once)))
	default:
		out.Lines = append(out.Lines, fmt.Sprintf("It writes %s to the prompt cache again.", tokens(p.Rewrite)))
	}
	switch {
	case change == 0:
	case !p.Priced:
		out.Lines = append(out.Lines, fmt.Sprintf("Later requests stay that much %s. Prices of %s are unknown.", longer(change), v.modelName()))
	case p.PerRequest < 0:
		out.Lines = append(out.Lines, fmt.Sprintf("Each later request costs %s more.", money(-p.PerRequest)))
	case p.PerRequest > 0:
		out.Lines = append(out.Lines, fmt.Sprintf("Each later request costs %s less.", money(p.PerRequest)))
	}
	return out
}

// samePrice says that an action does not change the next request.
func (v *visit) samePrice(why string) *priceSaid {
	return &priceSaid{Size: fmt.Sprintf("The next request still has %s.", tokens(v.s.Context("").Size)), Lines: []string{why}, Free: true}
}

// modelName is the session's model for a person.
func (v *visit) modelName() string {
	if m := v.s.Meta().Model; m != "" {
		return visible.Line(m)
	}
	return "the model"
}

func longer(change int) string {
	if change > 0 {
		return "longer"
	}
	return "shorter"
}

func signed(n int) string {
	if n > 0 {
		return "+" + thousands(n)
	}
	return "−" + thousands(-n)
}

// tokens returns a number of tokens.
func tokens(n int) string { return pluralOf(n, "token") }

// money returns an amount to the cent, and says so if it is less.
func money(x float64) string {
	if x > 0 && x < 0.005 {
		return "less than $0.01"
	}
	return dollars(x)
}

// sentence makes a sentence of an error's text.
func sentence(s string) string {
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
