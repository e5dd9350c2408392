package billed_test

import (
	"math"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/transcript"
)

func models(*transcript.Session) billed.Models {
	return func(name string) furl.Model {
		m, _ := catalog.Default().Lookup(name)
		return m
	}
}

func read(t testing.TB, fixture string) *transcript.Recording {
	t.Helper()
	rec, err := transcript.ReadFile("../../transcript/testdata/" + fixture)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Seven files that differ only in the terms of their two requests cost seven amounts, but for
// Anthropic's priority tier, which has no public price and is named. By hand, at the
// prices of Claude Opus 5: 6 fresh, 65,000 read, 10,000 written, 160 out is
// 0.00003 + 0.0325 + 0.0625 + 0.004 = $0.09903.
func TestTerms(t *testing.T) {
	const usual = 0.09903
	for fixture, want := range map[string]float64{
		"std": usual, "fast": 2 * usual, "geo": 1.1 * usual, "batch": usual / 2, "priority": usual,
		"websearch": usual + 2*5*0.01,
		"advisor":   usual + 2*(60_000*5+2000*25)/1e6,
	} {
		bill := billed.Sum(billed.OfRecording(read(t, "claude-billing-"+fixture+".jsonl"), models))
		if math.Abs(bill.Cost-want) > 1e-9 || bill.Requests != 2 || bill.Unpriced != 0 {
			t.Errorf("%s: got %+v, want $%v for 2 requests", fixture, bill, want)
		}
		if priority := fixture == "priority"; priority != slices.Equal(bill.Terms, []string{`service tier "priority"`}) {
			t.Errorf("%s: %q are not priced", fixture, bill.Terms)
		}
	}
}
