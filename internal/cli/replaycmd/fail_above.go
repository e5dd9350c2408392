package replaycmd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/replay"
)

// ceilings are the limits of --fail-above; nil means no limit.
type ceilings struct {
	cost   *float64 // US dollars of all recordings
	prompt *int     // tokens of the largest prompt
	blind  *float64 // share of edits, from 0 to 1
}

// parseCeilings parses pairs such as cost=5, prompt=180k and blind=10%.
func parseCeilings(pairs []string) (c ceilings, err error) {
	seen := make(map[string]bool)
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || seen[name] {
			return c, cmdline.BadUsage("invalid --fail-above %q: expected NAME=VALUE once for each of cost, prompt and blind, such as cost=5,prompt=180k,blind=10%%", pair)
		}
		seen[name] = true
		switch name {
		case "cost":
			d, err := strconv.ParseFloat(strings.TrimPrefix(value, "$"), 64)
			if err != nil || !(d >= 0 && d <= 1e12) { // NaN is not
				return c, cmdline.BadUsage("invalid --fail-above cost=%s: expected an amount in US dollars such as 5 or 0.50", value)
			}
			c.cost = &d
		case "prompt":
			n, err := numbers.ParseTokens(value)
			if err != nil {
				return c, cmdline.BadUsage("invalid --fail-above prompt=%s: expected a number of tokens such as 180k", value)
			}
			c.prompt = &n
		case "blind":
			p, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
			if err != nil || !(p >= 0 && p <= 100) {
				return c, cmdline.BadUsage("invalid --fail-above blind=%s: expected a percentage of edits from 0 to 100, such as 10%%", value)
			}
			p /= 100
			c.blind = &p
		default:
			return c, cmdline.BadUsage("invalid --fail-above %q: choose among cost, prompt and blind", pair)
		}
	}
	return c, nil
}

// check returns an error for each figure of a report that is above its ceiling. The
// policies are those that --policy names, in all windows, or else the recommended one of
// each window.
func (c *ceilings) check(rep *replay.Report, named []string) error {
	if *c == (ceilings{}) {
		return nil
	}
	var errs []error
	checked := false
	for i := range rep.Totals {
		r := &rep.Totals[i]
		if len(named) > 0 && !slices.Contains(named, r.Policy) {
			continue
		}
		if best, fits := replay.Recommend(rep.Totals, r.Window, rep.Wish); len(named) == 0 && (best != i || !fits) {
			continue
		}
		checked = true
		errs = append(errs, c.above(r)...)
	}
	if !checked {
		return errors.New("--fail-above has nothing to check: no policy is recommended; name those to check with --policy")
	}
	return errors.Join(errs...)
}

// above returns the figures of a result that are above their ceilings.
func (c *ceilings) above(r *replay.Result) (errs []error) {
	where := "policy " + r.Policy
	if r.Policy == "none" {
		where = "as recorded"
	}
	if r.Window > 0 {
		where += fmt.Sprintf(" with a window of %s tokens", numbers.Thousands(r.Window))
	}
	if c.cost != nil {
		switch total := r.Total(); {
		case total == nil:
			errs = append(errs, fmt.Errorf("%s: cost is unknown, because the model's prices are; set them with --price-input and --price-output, or leave out cost= of --fail-above", where))
		case *total > *c.cost:
			errs = append(errs, fmt.Errorf("%s: cost is $%s, above $%s (--fail-above cost)", where, numbers.Cents(*total), numbers.Cents(*c.cost)))
		}
	}
	if c.prompt != nil && r.Peak > *c.prompt {
		errs = append(errs, fmt.Errorf("%s: the largest prompt has %s tokens, above %s (--fail-above prompt)", where, numbers.Thousands(r.Peak), numbers.Thousands(*c.prompt)))
	}
	if c.blind != nil && r.Edits > 0 {
		if share := float64(r.BlindEdits) / float64(r.Edits); share > *c.blind {
			errs = append(errs, fmt.Errorf("%s: %d of %s are blind (%.1f%%), above %g%% (--fail-above blind)", where, r.BlindEdits, numbers.Count(r.Edits, "edit"), 100*share, 100**c.blind))
		}
	}
	return errs
}
