package report

import (
	"math"
	"reflect"
	"testing"

	"github.com/furlhq/furl/replay"
)

// A bar has every part of a cost: its total is the result's, whatever parts there are.
func TestBarsHaveTheWholeCost(t *testing.T) {
	r := replay.Result{Policy: none, OverflowCost: 0.5}
	split := reflect.ValueOf(&r.Split).Elem()
	cost := 0.0
	for i := range split.NumField() {
		split.Field(i).SetFloat(float64(i + 1))
		cost += float64(i + 1)
	}
	if sum := r.Split.Input() + r.Split.Output; sum != cost {
		t.Fatalf("input and output are %g of %g", sum, cost)
	}
	r.Cost = &cost
	b := newBars([]replay.Result{r}, nil, "")
	if got := b.Rows[0].total; math.Abs(got-*r.Total()) > 1e-9 {
		t.Errorf("the bar has $%g, the result $%g", got, *r.Total())
	}
	if want := split.NumField() + 1; len(b.Rows[0].Segments) != want || len(b.Classes) != want {
		t.Errorf("%d segments and %d classes, want %d", len(b.Rows[0].Segments), len(b.Classes), want)
	}
}
