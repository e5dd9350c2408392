package catalog

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"go.yaml.in/yaml/v3"
)

// entry is a model as a file describes it: assignments in order, so that
// those of one file can be applied after those of another.
type entry struct {
	id      string
	aliases []string
	sets    []set
	file    string
	line    int
}

// set assigns one value.
type set func(*Entry)

// field reads the value of one key. Its assignments do not refer to the node.
type field func(*parser, string, *yaml.Node) []set

// fields are the keys of a mapping.
type fields map[string]field

// build applies the assignments.
func (e *entry) build() Entry {
	b := Entry{Source: e.file, Where: where(e.file, e.line), Aliases: e.aliases}
	b.Model.Format = furl.FormatChat
	for _, s := range e.sets { // first, to know the format
		s(&b)
	}
	b.Model = ofFormat(b.Model.Format)
	b.Model.ID = e.id
	for _, s := range e.sets {
		s(&b)
	}
	b.Model.Prices = price.Complete(b.Model.Prices)
	b.Model.LongPrices = price.Complete(b.Model.LongPrices)
	return b
}

// modelFields are the keys of an entry, except id and aliases.
var modelFields = fields{
	"date":       text(func(e *Entry) *string { return &e.Date }, isDate),
	"source":     text(func(e *Entry) *string { return &e.Source }, nil),
	"provider":   text(func(e *Entry) *string { return &e.Model.Provider }, nil),
	"format":     formatField,
	"window":     count(func(e *Entry) *int { return &e.Model.Window }),
	"max_output": count(func(e *Entry) *int { return &e.Model.MaxOutput }),

	"prices": object(priceFields(func(e *Entry) *furl.Prices { return &e.Model.Prices })),
	"long_prompts": object(with(priceFields(func(e *Entry) *furl.Prices { return &e.Model.LongPrices }),
		"above", count(func(e *Entry) *int { return &e.Model.LongAbove }))),
	"caching": object(fields{
		"explicit":   flag(func(e *Entry) *bool { return &e.Model.Caching.Explicit }),
		"min_prefix": count(func(e *Entry) *int { return &e.Model.Caching.MinPrefix }),
		"granule":    count(func(e *Entry) *int { return &e.Model.Caching.Granule }),
		"lifetime":   lifetimeField,
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
	"prefill":       flag(func(e *Entry) *bool { return &e.Model.Prefill }),
	"limits": object(fields{
		"bytes":    count(func(e *Entry) *int { return &e.Model.MaxBytes }),
		"images":   count(func(e *Entry) *int { return &e.Model.MaxImages }),
		"messages": count(func(e *Entry) *int { return &e.Model.MaxMessages }),
	}),
	"images": object(fields{
		"max_tokens":       count(func(e *Entry) *int { return &e.Model.ImageTokens }),
		"pixels_per_token": count(func(e *Entry) *int { return &e.Model.PixelsPerToken }),
	}),
	"token_scale": number(func(e *Entry) *float64 { return &e.Model.TokenScale }, maxScale),
	"item_tokens": number(func(e *Entry) *float64 { return &e.Model.ItemTokens }, maxItem),
}

func priceFields(p func(*Entry) *furl.Prices) fields {
	return fields{
		"input":          number(func(e *Entry) *float64 { return &p(e).Input }, maxPrice),
		"cache_read":     number(func(e *Entry) *float64 { return &p(e).CacheRead }, maxPrice),
		"cache_write":    number(func(e *Entry) *float64 { return &p(e).CacheWrite }, maxPrice),
		"cache_write_1h": number(func(e *Entry) *float64 { return &p(e).CacheWrite1h }, maxPrice),
		"output":         number(func(e *Entry) *float64 { return &p(e).Output }, maxPrice),
	}
}

func with(f fields, name string, v field) fields {
	f[name] = v
	return f
}
