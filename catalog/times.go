package catalog

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/strictyaml"
)

// timedFields are the keys of an item of timed_prices. They change the last item.
var timedFields = with(priceFields(func(e *Entry) *furl.Prices { return &lastTimed(e).Prices }), fields{
	"long_prompts": object(priceFields(func(e *Entry) *furl.Prices { return &lastTimed(e).LongPrices })),
	"from":         momentField(func(e *Entry) *time.Time { return &lastTimed(e).From }),
	"until":        momentField(func(e *Entry) *time.Time { return &lastTimed(e).Until }),
	"days":         daysField,
	"hours":        hoursField,
})

func lastTimed(e *Entry) *furl.TimedPrices {
	return &e.Model.TimedPrices[len(e.Model.TimedPrices)-1]
}

// timedPricesField reads the prices of certain times. A list replaces the one before.
func timedPricesField(e *entry, v strictyaml.Value) {
	e.sets = append(e.sets, func(e *Entry) { e.Model.TimedPrices = nil })
	for item := range v.List("a list of prices, each with from, until, days or hours") {
		e.sets = append(e.sets, func(e *Entry) { e.Model.TimedPrices = append(e.Model.TimedPrices, furl.TimedPrices{}) })
		object(timedFields)(e, item)
	}
}

// usualPricesField reads prices or long_prompts. They apply at all times, unless the
// same file has timed_prices too.
func usualPricesField(read field) field {
	return func(e *entry, v strictyaml.Value) {
		e.usual = true
		read(e, v)
	}
}

// change merges an entry of another file into e. The file and line of e are then those of
// the change, for errors.
func (e *entry) change(by *entry) {
	was, is := e.build(), by.build()
	e.sets = by.after(e.sets)
	if len(by.keys) > 0 {
		e.sets = append(e.sets, func(b *Entry) { b.Date, b.Source = was.Date, was.Source })
		e.changes = append(e.changes[:len(e.changes):len(e.changes)], Change{slices.Sorted(slices.Values(by.keys)), is.Origin})
	}
	e.where, e.file, e.line = was.Where, by.file, by.line
}

// after returns the assignments of a file's entry as they follow those of another file.
func (e *entry) after(before []set) []set {
	sets := before[:len(before):len(before)]
	if e.usual {
		sets = append(sets, func(e *Entry) { e.Model.TimedPrices = nil })
	}
	return append(sets, e.sets...)
}

// momentLayouts are the forms of from and until, in UTC.
var momentLayouts = []string{time.DateOnly, "2006-01-02 15:04"}

func momentField(to func(*Entry) *time.Time) field {
	return func(e *entry, v strictyaml.Value) {
		const expected = "a day or a time in UTC, such as 2027-01-01 or 2027-01-01 16:00"
		s, ok := v.Text(expected)
		if !ok {
			return
		}
		for _, layout := range momentLayouts {
			if at, err := time.Parse(layout, s); err == nil {
				e.sets = append(e.sets, func(e *Entry) { *to(e) = at })
				return
			}
		}
		v.Expected(expected)
	}
}

// weekdays is the only value of days.
const weekdays = "weekdays"

func daysField(e *entry, v strictyaml.Value) {
	if _, ok := v.OneOf(weekdays); ok {
		e.sets = append(e.sets, func(e *Entry) { lastTimed(e).Weekdays = true })
	}
}

func hoursField(e *entry, v strictyaml.Value) {
	var hours []furl.Hours
	for item := range v.List(`a list of hours in UTC, such as ["01:00-04:00"]`) {
		const expected = `hours in UTC, such as "01:00-04:00"`
		s, ok := item.Text(expected)
		if !ok {
			return
		}
		h, ok := parseHours(s)
		if !ok {
			item.Expected(expected)
			return
		}
		hours = append(hours, h)
	}
	e.sets = append(e.sets, func(e *Entry) { lastTimed(e).Hours = hours })
}

func parseHours(s string) (furl.Hours, bool) {
	from, to, _ := strings.Cut(s, "-")
	var h furl.Hours
	for _, t := range []struct {
		text string
		to   *time.Duration
	}{{from, &h.From}, {to, &h.To}} {
		if t.text == "24:00" {
			*t.to = 24 * time.Hour
			continue
		}
		at, err := time.Parse("15:04", t.text)
		if err != nil {
			return furl.Hours{}, false
		}
		*t.to = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	}
	return h, h.From < h.To
}

// DescribeTimes says when prices apply, such as "weekdays 01:00-04:00 UTC".
func DescribeTimes(t *furl.TimedPrices) string {
	var parts []string
	if !t.From.IsZero() {
		parts = append(parts, "from "+momentText(t.From))
	}
	if !t.Until.IsZero() {
		parts = append(parts, "until "+momentText(t.Until))
	}
	if t.Weekdays {
		parts = append(parts, weekdays)
	}
	hours := make([]string, len(t.Hours))
	for i, h := range t.Hours {
		hours[i] = fmt.Sprintf("%s-%s", clockText(h.From), clockText(h.To))
	}
	if len(hours) > 0 {
		parts = append(parts, strings.Join(hours, ", "))
	}
	return strings.Join(parts, " ") + " UTC"
}

func momentText(t time.Time) string {
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(momentLayouts[0])
	}
	return t.Format(momentLayouts[1])
}

func clockText(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute)
}

// TimesYAML writes when prices apply as the beginning of an item of timed_prices.
func TimesYAML(t *furl.TimedPrices) string {
	var b strings.Builder
	if !t.From.IsZero() {
		fmt.Fprintf(&b, "from: %s, ", momentText(t.From))
	}
	if !t.Until.IsZero() {
		fmt.Fprintf(&b, "until: %s, ", momentText(t.Until))
	}
	if t.Weekdays {
		fmt.Fprintf(&b, "days: %s, ", weekdays)
	}
	for i, h := range t.Hours {
		fmt.Fprintf(&b, "%s%q", map[bool]string{true: "hours: [", false: ", "}[i == 0], clockText(h.From)+"-"+clockText(h.To))
	}
	if len(t.Hours) > 0 {
		b.WriteString("], ")
	}
	return b.String()
}
