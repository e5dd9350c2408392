package catalog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/strictyaml"
	"github.com/furlhq/furl/price"
)

// The limits of a file, far above any useful file.
const (
	maxFile   = 4 << 20
	maxModels = 10_000
	maxErrors = 20 // about entries as a whole
)

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d MiB, the limit for a catalogue", maxFile>>20)
	}
	return data, err
}

// parse returns a catalogue without an index.
func parse(name string, data []byte) (*Catalog, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, maxFile>>20)
	}
	c := new(Catalog)
	err := strictyaml.Parse(name, data, func(root strictyaml.Value) {
		keys := map[string]func(strictyaml.Value){
			"models":   func(v strictyaml.Value) { c.entries = readModels(name, v) },
			"families": func(v strictyaml.Value) { c.families = readFamilies(v) },
		}
		for read, v := range strictyaml.Object(root, keys) {
			read(v)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// notFacts are the keys of an entry that do not describe the model.
var notFacts = []string{"id", "aliases", "date", "source"}

func readModels(name string, v strictyaml.Value) (entries []entry) {
	const expected = `a list of models, each starting with "- id: NAME"`
	if n := v.Len(); n > maxModels {
		v.Report(fmt.Sprintf("too many models: %d", n), fmt.Sprintf("at most %d are read", maxModels))
		return nil
	}
	for item := range v.List(expected) {
		e := entry{file: name, line: item.Line(), builtIn: name == builtInName}
		for read, v := range strictyaml.Object(item, modelFields) {
			read(&e, v)
			if !slices.Contains(notFacts, v.Name()) {
				e.keys = append(e.keys, v.Name())
			}
		}
		item.Require("id", "add the name that requests use for the model")
		entries = append(entries, e)
	}
	return entries
}

// names indexes the entries of one file by id and alias. Names must be unique.
func names(entries []entry) (map[string]int, error) {
	index := make(map[string]int, 2*len(entries))
	var errs []error
	for i, e := range entries {
		for _, n := range append([]string{e.id}, e.aliases...) {
			if j, dup := index[key(n)]; dup && len(errs) < maxErrors {
				errs = append(errs, strictyaml.Error(e.file, e.line, fmt.Sprintf("duplicate name %q", n), fmt.Sprintf("%q on line %d has it too", entries[j].id, entries[j].line)))
			} else if !dup {
				index[key(n)] = i
			}
		}
	}
	return index, errors.Join(errs...)
}

// check validates the combination of an entry's values.
func (e *entry) check() error {
	var errs []error
	report := func(key, text string, args ...any) {
		errs = append(errs, strictyaml.Error(e.file, e.line, fmt.Sprintf("invalid %s of %q", key, e.id), fmt.Sprintf(text, args...)))
	}
	b := e.build()
	m := &b.Model
	type named struct {
		name string
		furl.Prices
	}
	all := []named{{"prices", m.Prices}, {"long_prompts", m.LongPrices}}
	for i := range m.TimedPrices {
		t := &m.TimedPrices[i]
		all = append(all, named{"timed_prices", t.Prices}, named{"timed_prices", t.LongPrices})
		switch {
		case !price.Known(t.Prices) || (m.LongAbove > 0) != price.Known(t.LongPrices):
			report("timed_prices", "expected input and output, and long_prompts exactly if the model has them")
		case !t.From.IsZero() && !t.Until.IsZero() && !t.From.Before(t.Until):
			report("timed_prices", "from must be before until")
		case t.From.IsZero() && t.Until.IsZero() && !t.Weekdays && len(t.Hours) == 0:
			report("timed_prices", "add from, until, days or hours, or use prices")
		}
	}
	for _, q := range all {
		if q.CacheRead > q.Input {
			report(q.name, "cache_read %v is above input %v; swap or correct them", q.CacheRead, q.Input)
		}
		if q.Input > 0 && q.Output == 0 {
			report(q.name, "input has a price and output has none; add output")
		}
		if q.Input == 0 && q.Output > 0 {
			report(q.name, "output has a price and input has none; add input")
		}
	}
	if (m.LongAbove > 0) != price.Known(m.LongPrices) {
		report("long_prompts", "expected both \"above\" and prices")
	}
	if m.Window > 0 && m.MaxOutput > m.Window {
		report("max_output", "%d is above the window, %d; swap or correct them", m.MaxOutput, m.Window)
	}
	if m.Caching.Explicit && m.Caching.MaxMarks == 0 {
		report("caching", "explicit caching allows no marks; add max_marks")
	}
	if m.Caching.Lifetime == 0 && m.Caching.MinPrefix > 0 {
		report("caching", "min_prefix needs a lifetime; add one such as 5m")
	}
	if c := m.Caching; c.Extended > 0 && (c.Extended < c.Lifetime || c.Explicit) {
		report("caching", "extended must be above lifetime, and without explicit; correct or remove it")
	}
	return errors.Join(errs...)
}

func idField(e *entry, v strictyaml.Value) { e.id = word(v) }

func aliasesField(e *entry, v strictyaml.Value) {
	for item := range v.List("a list such as [a, b]") {
		if w := word(item); w != "" {
			e.aliases = append(e.aliases, w)
		}
	}
}

// word reads a name. It returns "" if there is none.
func word(v strictyaml.Value) string {
	const expected = "a name of 1 to 256 characters without spaces"
	s, ok := v.Text(expected)
	if ok && (s == "" || len(s) > maxName || strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })) {
		v.Expected(expected)
		return ""
	}
	return s
}

func count(at func(*Entry) *int) field {
	return func(e *entry, v strictyaml.Value) {
		if n, ok := v.Whole("a whole number from 0 to 1,000,000,000", 1_000_000_000); ok {
			e.sets = append(e.sets, func(e *Entry) { *at(e) = int(n) })
		}
	}
}

// windowField reads the window, which is then not assumed.
func windowField(e *entry, v strictyaml.Value) {
	count(func(e *Entry) *int { e.Model.WindowAssumed = false; return &e.Model.Window })(e, v)
}

// priceField is in dollars per million tokens.
func priceField(at func(*Entry) *float64) field {
	return number(at, "a number from 0 to 1,000,000", 1_000_000)
}

// The values of billing: factors of the prices, and dollars for 1,000 uses.
const (
	factor      = "a factor from 0 to 1,000"
	perThousand = "a price of 1,000 uses from 0 to 1,000"
)

// factorsField reads a mapping of terms to numbers. A term that is not named keeps its
// value.
func factorsField(at func(*furl.Billing) *map[string]float64, expected string) field {
	return func(e *entry, v strictyaml.Value) {
		for item := range v.Entries("terms with numbers, such as {fast: 2}") {
			term := item.Name()
			if term == "" || len(term) > maxName {
				item.ReportKey("invalid term", "expected a word of a response, such as fast")
				continue
			}
			f, ok := item.Number(expected, 1000)
			if !ok {
				continue
			}
			e.sets = append(e.sets, func(e *Entry) {
				m := at(&e.Model.Billing)
				if *m == nil {
					*m = make(map[string]float64)
				}
				(*m)[term] = f
			})
		}
	}
}

func number(at func(*Entry) *float64, expected string, most float64) field {
	return func(e *entry, v strictyaml.Value) {
		if f, ok := v.Number(expected, most); ok {
			e.sets = append(e.sets, func(e *Entry) { *at(e) = f })
		}
	}
}

func flag(at func(*Entry) *bool) field {
	return func(e *entry, v strictyaml.Value) {
		if b, ok := v.Bool(); ok {
			e.sets = append(e.sets, func(e *Entry) { *at(e) = b })
		}
	}
}

func text(at func(*Entry) *string) field {
	return func(e *entry, v strictyaml.Value) {
		if s, ok := v.Text("text"); ok {
			e.sets = append(e.sets, func(e *Entry) { *at(e) = s })
		}
	}
}

func dateField(e *entry, v strictyaml.Value) {
	const expected = "a month or a day, such as 2026-10 or 2026-10-07"
	s, ok := v.Text(expected)
	if !ok {
		return
	}
	for _, layout := range []string{"2006-01", "2006-01-02"} {
		if _, err := time.Parse(layout, s); err == nil {
			e.sets = append(e.sets, func(e *Entry) { e.Date = s })
			return
		}
	}
	v.Expected(expected)
}

func formatField(e *entry, v strictyaml.Value) {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	if name, ok := v.OneOf(names...); ok {
		e.sets = append(e.sets, func(e *Entry) { e.Model.Format = furl.Format(name) })
	}
}

func lifetimeField(to func(*furl.Caching) *time.Duration) field {
	return func(e *entry, v strictyaml.Value) {
		const expected = "a duration such as 5m or 1h, up to 720h"
		s, ok := v.Text(expected)
		d, err := time.ParseDuration(s)
		switch {
		case !ok:
		case err != nil || d <= 0 || d > 30*24*time.Hour:
			v.Expected(expected)
		default:
			e.sets = append(e.sets, func(e *Entry) { *to(&e.Model.Caching) = d })
		}
	}
}

// object reads a mapping with keys of its own.
func object(keys fields) field {
	return func(e *entry, v strictyaml.Value) {
		for read, v := range strictyaml.Object(v, keys) {
			read(e, v)
		}
	}
}
