package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/strictyaml"
	"github.com/furlhq/furl/price"
)

// entry is a model as a file describes it: assignments in order, so that
// those of one file can be applied after those of another.
type entry struct {
	id      string
	aliases []string
	sets    []set
	usual   bool     // it sets prices for all times
	keys    []string // those with facts about the model
	builtIn bool
	file    string
	line    int
	changes []Change // by entries that were merged into this one
	where   string   // file and line of the entry that the changes were merged into, "" if none
}

// set assigns one value.
type set func(*Entry)

// field reads the value of one key into the entry. Its assignments do not refer
// to the value.
type field = func(*entry, strictyaml.Value)

// fields are the keys of a mapping.
type fields map[string]field

// build applies the assignments.
func (e *entry) build() Entry {
	b := Entry{Aliases: e.aliases, Changes: e.changes}
	b.Where = cmp.Or(e.where, fmt.Sprintf("%s:%d", e.file, e.line))
	b.Model.Format = furl.FormatChat
	for _, s := range e.sets { // first, to know the format
		s(&b)
	}
	b.Model = ofFormat(b.Model.Format)
	b.Model.ID = e.id
	for _, s := range e.sets {
		s(&b)
	}
	b.Source = cmp.Or(b.Source, e.file)
	price.Each(&b.Model, func(p *furl.Prices) { *p = price.Complete(*p) })
	return b
}

// modelFields are the keys of an entry.
var modelFields = fields{
	"id":         idField,
	"aliases":    aliasesField,
	"date":       dateField,
	"source":     text(func(e *Entry) *string { return &e.Source }),
	"provider":   text(func(e *Entry) *string { return &e.Model.Provider }),
	"format":     formatField,
	"window":     windowField,
	"max_output": count(func(e *Entry) *int { return &e.Model.MaxOutput }),

	"prices": usualPricesField(object(priceFields(func(e *Entry) *furl.Prices { return &e.Model.Prices }))),
	"long_prompts": usualPricesField(object(with(priceFields(func(e *Entry) *furl.Prices { return &e.Model.LongPrices }), fields{
		"above": count(func(e *Entry) *int { return &e.Model.LongAbove }),
	}))),
	"timed_prices": timedPricesField,
	"billing": object(fields{
		"speed": factorsField(func(b *furl.Billing) *map[string]float64 { return &b.Speed }, factor),
		"geo":   factorsField(func(b *furl.Billing) *map[string]float64 { return &b.Geo }, factor),
		"tier":  factorsField(func(b *furl.Billing) *map[string]float64 { return &b.Tier }, factor),
		"tools": factorsField(func(b *furl.Billing) *map[string]float64 { return &b.Tools }, perThousand),
	}),
	"caching": object(fields{
		"explicit":   flag(func(e *Entry) *bool { return &e.Model.Caching.Explicit }),
		"min_prefix": count(func(e *Entry) *int { return &e.Model.Caching.MinPrefix }),
		"granule":    count(func(e *Entry) *int { return &e.Model.Caching.Granule }),
		"lifetime":   lifetimeField(func(c *furl.Caching) *time.Duration { return &c.Lifetime }),
		"extended":   lifetimeField(func(c *furl.Caching) *time.Duration { return &c.Extended }),
		"lookback":   count(func(e *Entry) *int { return &e.Model.Caching.Lookback }),
		"max_marks":  count(func(e *Entry) *int { return &e.Model.Caching.MaxMarks }),
	}),
	"thinking": object(fields{
		"binds":     flag(func(e *Entry) *bool { return &e.Model.Thinking.Binds }),
		"last_only": flag(func(e *Entry) *bool { return &e.Model.Thinking.LastOnly }),
		"removable": flag(func(e *Entry) *bool { return &e.Model.Thinking.Removable }),
		"required":  flag(func(e *Entry) *bool { return &e.Model.Thinking.Required }),
	}),
	"system_inside": flag(func(e *Entry) *bool { return &e.Model.SystemInside }),
	"system_first":  flag(func(e *Entry) *bool { return &e.Model.SystemFirst }),
	"tool_search":   flag(func(e *Entry) *bool { return &e.Model.ToolSearch }),
	"prefill":       flag(func(e *Entry) *bool { return &e.Model.Prefill }),
	"limits": object(fields{
		"bytes":    count(func(e *Entry) *int { return &e.Model.MaxBytes }),
		"images":   count(func(e *Entry) *int { return &e.Model.MaxImages }),
		"messages": count(func(e *Entry) *int { return &e.Model.MaxMessages }),
		// Of the sides of an image, in pixels: of each, and of each in a request with
		// more than many_images.
		"image_side":      count(func(e *Entry) *int { return &e.Model.Sides.Max }),
		"many_image_side": count(func(e *Entry) *int { return &e.Model.Sides.Many }),
		"many_images":     count(func(e *Entry) *int { return &e.Model.Sides.Above }),
	}),
	"images": object(fields{
		"max_tokens":       count(func(e *Entry) *int { return &e.Model.ImageTokens }),
		"pixels_per_token": count(func(e *Entry) *int { return &e.Model.PixelsPerToken }),
	}),
	"token_scale": number(func(e *Entry) *float64 { return &e.Model.TokenScale }, "a number from 0 to 100", 100),
	"item_tokens": number(func(e *Entry) *float64 { return &e.Model.ItemTokens }, "a number from 0 to 300", 300),
}

func priceFields(p func(*Entry) *furl.Prices) fields {
	return fields{
		"input":          priceField(func(e *Entry) *float64 { return &p(e).Input }),
		"cache_read":     priceField(func(e *Entry) *float64 { return &p(e).CacheRead }),
		"cache_write":    priceField(func(e *Entry) *float64 { return &p(e).CacheWrite }),
		"cache_write_1h": priceField(func(e *Entry) *float64 { return &p(e).CacheWrite1h }),
		// The same price: of the longer lifetime that requests can ask for, as OpenAI calls it.
		"cache_write_12h": priceField(func(e *Entry) *float64 { return &p(e).CacheWrite1h }),
		"output":          priceField(func(e *Entry) *float64 { return &p(e).Output }),
	}
}

func with(f, more fields) fields {
	maps.Copy(f, more)
	return f
}
