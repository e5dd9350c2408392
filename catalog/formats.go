package catalog

import (
	"time"

	"github.com/furlhq/furl"
)

// formats are the wire formats of the models' providers.
var formats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses, furl.FormatGemini}

// itemTokensAnthropic is what a call or a result costs in addition to its
// text: more than with other formats, and clients of this format tend to add
// reminders that they do not record. docs/internals/sizes.md has the measurements.
const itemTokensAnthropic = 35

// sidesAnthropic are the limits of images of Anthropic's API, for all models
// (platform.claude.com/docs/en/build-with-claude/vision, looked up on 2026-11-27).
var sidesAnthropic = furl.ImageSides{Max: 8000, Many: 2000, Above: 20}

// ofFormat returns the defaults for models of a wire format.
func ofFormat(format furl.Format) furl.Model {
	m := furl.Model{Format: format}
	switch format {
	case furl.FormatAnthropic:
		m.ItemTokens = itemTokensAnthropic
		m.Sides = sidesAnthropic
	case furl.FormatChat, furl.FormatResponses:
		m.SystemFirst = true
	}
	return m
}

// Unknown returns the defaults for a model that is not in any catalogue, by
// the format of the requests to it.
func Unknown(name string, format furl.Format) furl.Model {
	m := ofFormat(format)
	m.ID, m.Prefill, m.SystemInside = name, true, true
	return m
}

// CommonCaching describes how most models of a wire format cache prompts.
func CommonCaching(format furl.Format) furl.Caching {
	if format == furl.FormatAnthropic {
		return furl.Caching{Explicit: true, MinPrefix: 1024, Lifetime: 5 * time.Minute, Lookback: 20, MaxMarks: 4}
	}
	if format == furl.FormatGemini {
		// Implicit caching, with the largest minimum of the models
		// (ai.google.dev/gemini-api/docs/caching, 2026-11). The lifetime is not documented.
		return furl.Caching{MinPrefix: 4096, Lifetime: 5 * time.Minute}
	}
	return furl.Caching{MinPrefix: 1024, Granule: 128, Lifetime: 5 * time.Minute}
}
