package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/furlhq/furl/price"
)

// oddBill is by how much the recorded input cost may differ from the simulated
// one before the report says so.
const oddBill = 0.15

// notes says what a reader must know to trust the numbers of one recording;
// none are the runs under policy none.
func notes(sessions []*session, none []*run, o *Options) []string {
	var out []string
	for _, name := range unknown(sessions) {
		out = append(out, fmt.Sprintf("%s is not in the catalogue: %s", modelName(name), missing(o)))
	}
	var recorded, simulated float64
	hourly := false
	for i, s := range sessions {
		for n, q := range s.requests {
			u := q.ex.Usage
			if u.Prompt() == 0 || !q.known {
				continue
			}
			u.Output = 0
			recorded += price.OfRequest(&q.model, u)
			simulated += none[i].each[n].dollars
			hourly = hourly || u.CacheWrite1h > u.CacheWrite
		}
	}
	if hourly {
		out = append(out, "the client asked for cache entries of one hour; simulated are the default lifetime and its price")
	}
	own := o.Model == "" && !price.Known(o.Prices) && o.CacheRead == nil && o.CacheWrite == nil
	if own && recorded >= 0.01 && math.Abs(simulated/recorded-1) > oddBill {
		out = append(out, fmt.Sprintf("input cost $%.2f by the recorded use of the cache, $%.2f by the simulated one", recorded, simulated))
	}
	return out
}

// unknown lists the models of a recording that nothing is known of.
func unknown(sessions []*session) []string {
	var names []string
	for _, s := range sessions {
		for _, q := range s.requests {
			if !q.known && !slices.Contains(names, q.model.ID) {
				names = append(names, q.model.ID)
			}
		}
	}
	return names
}

func modelName(id string) string {
	if id == "" {
		return "a model that the recording does not name"
	}
	return "model " + id
}

// missing says what is not known of a model that is not in the catalogue.
func missing(o *Options) string {
	var parts []string
	if slices.Contains(o.Windows, 0) {
		parts = append(parts, "without a window nothing is reduced")
	}
	if !price.Known(o.Prices) {
		parts = append(parts, "without a price tokens are compared")
	}
	if len(parts) == 0 {
		return "the window and prices given are taken"
	}
	return strings.Join(parts, ", ")
}

// summaryNote says what replaces the summaries of models.
var summaryNote = fmt.Sprintf("Summaries are extracts of the hidden messages' own words, as long as the recording's own summaries are, "+
	"%d tokens where it has none, and billed as the request and the output of a model.", defaultSummary)

// remark collects what concerns all recordings.
func (r *Report) remark(models []string, asked bool) {
	if asked {
		r.Notes = append(r.Notes, summaryNote)
	}
	if len(models) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("Not in the catalogue: %s.", strings.Join(models, ", ")))
	}
}
