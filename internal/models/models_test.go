package models

import (
	"reflect"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
)

// The entry that furl models prints for a model is valid, and changes nothing as it is.
func TestCatalogEntry(t *testing.T) {
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"claude-fable-5-9", "openrouter/anthropic/claude-opus-9:beta", "somebody-s-own", "3", "true", `x"y`}
	for _, e := range catalog.Default().Entries() {
		names = append(names, e.Model.ID)
	}
	for _, name := range names {
		m := Describe(all, name, furl.FormatAnthropic)
		own, err := catalog.Parse("models.yaml", []byte(m.Entry))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, m.Entry)
			continue
		}
		c, err := catalog.Default().Merge(own)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, m.Entry)
			continue
		}
		got, ok := c.Lookup(name)
		want := all.Model(name, furl.FormatAnthropic)
		if !ok || got.Window != want.Window || got.MaxOutput != want.MaxOutput || got.Thinking != want.Thinking || got.Prices != want.Prices ||
			got.LongPrices != want.LongPrices || got.LongAbove != want.LongAbove || !reflect.DeepEqual(got.TimedPrices, want.TimedPrices) || got.WindowAssumed {
			t.Errorf("%s: got %+v\nwant %+v\n%s", name, got, want, m.Entry)
		}
	}
}
