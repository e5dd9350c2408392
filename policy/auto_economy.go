package policy

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// economy is what tokens cost on the request that is planned, in multiples of
// the price of fresh input.
type economy struct {
	read, write float64 // of a token that is cached, and of one that is written
	price       float64 // of fresh input, dollars per token; 0: unknown
	// remaining is how many further requests are expected.
	remaining float64
	// cold says that the whole prompt is written anyway.
	cold bool
	// near is how many counted tokens of the view are in messages after the
	// last breakpoint of one hour, or -1 if all entries live equally long. far
	// is the price of writing a token before it, and nearCold says that the
	// entries after it have expired, and those before it have not.
	near     int
	far      float64
	nearCold bool
	// forced says that the window demands a reduction, and all that what
	// would otherwise stay longer is to go too.
	forced, all bool
}

// Shares of the window. It demands a reduction where the room for the reply
// begins, less the first, by which sizes may be off where a provider has
// reported one before; until then from the second on. Each reduction frees at
// least the third, so that it lasts, and saves what rewriting costs within the
// requests that are expected; where what may go by the rules does not, what
// would stay longer goes too, since the same rewrite pays for both.
//
// Not earlier: a prompt that still fits is read at the price of reading, and
// what makes it fit is a rewrite, which may never pay if the session ends
// first, and frees more the later it comes.
const (
	forcedMargin = 0.01
	forcedFirst  = 0.85
	forcedGain   = 0.25
)

// demanded reports whether the window demands a reduction.
func demanded(v *furl.View, b furl.Budget) bool {
	switch {
	case b.Force || Over(v, b) != "":
		return true
	case b.Window <= 0:
		return false
	case b.LastUse.IsZero() && b.Size >= part(b.Window, forcedFirst):
		return true
	}
	return b.Size >= demandedFrom(&b)
}

// demandedFrom is the size from which the window demands a reduction, 0 if there is
// no window.
func demandedFrom(b *furl.Budget) int {
	if b.Window <= 0 {
		return 0
	}
	return b.Room() - part(b.Window, forcedMargin)
}

func economyOf(v *furl.View, b furl.Budget) economy {
	e := economy{read: 1, write: 1, remaining: remaining(v, b), near: -1}
	e.forced = demanded(v, b)
	prices := price.Complete(price.For(&b.Model, b.Size, b.Now))
	if !price.Known(prices) {
		return e
	}
	e.price = prices.Input / 1e6
	if !cached(&b) {
		e.cold = true
		return e
	}
	e.read, e.write = prices.CacheRead/prices.Input, prices.CacheWrite/prices.Input
	short, long := expired(&b)
	e.cold = short && (long || b.LongTo == 0)
	if b.LongTo > 0 && !e.cold {
		e.far, e.nearCold = prices.CacheWrite1h/prices.Input, short
		e.near = 0
		for i := upTo(v.Messages, b.LongTo); i < len(v.Messages); i++ {
			for j := range v.Messages[i].Blocks {
				e.near += v.Messages[i].Blocks[j].Tokens
			}
		}
	}
	return e
}

// edit returns what writing to the cache costs because of an edit, and what hiding
// saves, within the requests that are expected. Of the counted tokens of the view, tail
// are after the start of the edit, and freed of these become hidden.
func (e *economy) edit(tail, freed int) (rewrite, saved float64) {
	stay := float64(max(0, tail-freed))
	rewrite = stay * (e.write - e.read)
	saved = e.remaining * e.read * float64(freed)
	switch {
	case e.cold:
		return 0, saved + e.write*float64(freed)
	case e.near < 0:
		return rewrite, saved
	}
	// Hidden tokens are taken to be spread evenly over the tail.
	share := 1.0
	if tail > e.near {
		share = float64(e.near) / float64(tail)
	}
	rewrite = (1 - share) * stay * (e.far - e.read)
	if e.nearCold {
		return rewrite, saved + share*e.write*float64(freed)
	}
	return rewrite + share*stay*(e.write-e.read), saved
}

// remaining is how many further requests are expected: as many as the session
// has had steps (Lindy's rule), unless earlier sessions tell.
func remaining(v *furl.View, b furl.Budget) float64 {
	if b.Remaining > 0 {
		return b.Remaining
	}
	return float64(v.Steps)
}

// patience is how often what waiting has cost must hold the price of the
// rewrite before it is time. With 1 the interval is the best for a session that
// grows steadily; a little more leaves room for sessions that end early. Where
// writing costs many times what reading does, because reading is cheap or entries
// live an hour, the intervals are as long as many sessions, and the first edit
// comes late or never unless it is less patient. Where reading is dear, more
// patience keeps results visible for as many requests as where it costs a tenth.
func (e *economy) patience() float64 {
	return min(12*max(0.1, e.read), max(0.7, 14*e.read/max(e.read, max(e.write, e.far)-e.read)))
}

// words says what a reduction costs and saves, of which so many of the
// provider's tokens stay after the edit and so many are freed.
func (e *economy) words(b furl.Budget, stay, freed int) string {
	why := ""
	if asked := b.Force && b.Size < part(b.Window, forcedFirst); e.forced && !asked { // not by a person
		why = fmt.Sprintf("required by the window: %s of %s tokens; ", thousands(b.Size), thousands(b.Window))
	}
	saves := func(perRequest float64) string {
		return fmt.Sprintf("saves %s per request; about %s more requests expected", dollars(perRequest), thousands(int(e.remaining+0.5)))
	}
	switch {
	case e.price == 0:
		return why + "price unknown"
	case e.cold && !cached(&b):
		return why + "no prompt cache, " + saves(float64(freed)*e.price)
	case e.cold:
		return why + fmt.Sprintf("prompt cache expired: no extra cost, saves %s now and %s",
			dollars(float64(freed)*e.price*e.write), strings.TrimPrefix(saves(float64(freed)*e.price*e.read), "saves "))
	}
	scaled := *e
	scaled.near = b.Of(e.near, 0)
	rewrite, _ := scaled.edit(max(0, stay)+freed, freed)
	return why + fmt.Sprintf("rewriting %s tokens costs %s, %s",
		thousands(max(0, stay)), dollars(rewrite*e.price), saves(float64(freed)*e.price*e.read))
}

// dollars formats an amount with two significant digits, or cents from ten cents on.
func dollars(x float64) string {
	switch {
	case x >= 0.1:
		return fmt.Sprintf("$%.2f", x)
	case x >= 0.01:
		return fmt.Sprintf("$%.3f", x)
	}
	return fmt.Sprintf("$%.4f", x)
}
