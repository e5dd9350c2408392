package catalog

import (
	"time"

	"github.com/furlhq/furl"
)

// formats are the wire formats that a model's provider can speak.
var formats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}

// itemTokensAnthropic is what a call or a result costs beyond its words: more
// than elsewhere, and clients of this format tend to add reminders that they do
// not record. docs/sizes.md has the measurements.
const itemTokensAnthropic = 35

// ofFormat is what holds for models of a wire format unless an entry says
// otherwise.
func ofFormat(format furl.Format) furl.Model {
	m := furl.Model{Format: format}
	switch format {
	case furl.FormatAnthropic:
		m.ItemTokens = itemTokensAnthropic
	case furl.FormatChat, furl.FormatResponses:
		m.SystemFirst = true
	}
	return m
}

// Unknown is what to assume of a model that no catalogue has, by the format of
// the requests to it.
func Unknown(name string, format furl.Format) furl.Model {
	m := ofFormat(format)
	m.ID, m.Prefill, m.SystemInside = name, true, true
	return m
}

// CommonCaching is how most models of a wire format cache prompts.
func CommonCaching(format furl.Format) furl.Caching {
	if format == furl.FormatAnthropic {
		return furl.Caching{Explicit: true, MinPrefix: 1024, Lifetime: 5 * time.Minute, Lookback: 20, MaxMarks: 4}
	}
	return furl.Caching{MinPrefix: 1024, Granule: 128, Lifetime: 5 * time.Minute}
}
