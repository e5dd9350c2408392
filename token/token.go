// Package token sizes what a model reads: it counts the tokens of texts,
// images and documents without the network, and corrects the counts by what
// providers report.
//
// Counting uses OpenAI's o200k_base vocabulary whatever the model, since the
// makers of the others publish none. It is a unit of length that goes with
// words rather than with bytes; Calibration turns it into the provider's
// own tokens.
package token

import "github.com/furlhq/furl"

// Options say how images are billed, which differs by model; texts are
// counted in one way.
type Options struct {
	// ImageTokens is the most one image costs, and what one of unknown size
	// is taken to cost. If zero, defaults to 1600.
	ImageTokens int
	// PixelsPerToken is how many pixels make a token. If zero, defaults to
	// 750.
	PixelsPerToken int
	// Tiles says that images are billed in tiles of 512 by 512 pixels, after
	// scaling to at most 2048 by 2048 with a short side of at most 768, plus
	// half a tile. ImageTokens is then the price of eight and a half tiles.
	Tiles bool
}

// Counter counts tokens. It implements furl.Counter and furl.MediaCounter, and
// is safe for concurrent use. The vocabulary is made ready on the first count
// (3 ms and 2.5 MB) and shared by all counters.
type Counter struct {
	opts Options
}

var (
	_ furl.Counter      = (*Counter)(nil)
	_ furl.MediaCounter = (*Counter)(nil)
)

// New returns a counter. Nil options are the defaults.
func New(opts *Options) *Counter {
	c := &Counter{}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.ImageTokens <= 0 {
		c.opts.ImageTokens = 1600
	}
	if c.opts.PixelsPerToken <= 0 {
		c.opts.PixelsPerToken = 750
	}
	return c
}

// O200k returns a counter with the default options.
func O200k() *Counter { return New(nil) }

// For returns a counter that sizes images as the model's provider does. A
// model of OpenAI's with a price per image and none per pixel bills in tiles.
func For(m *furl.Model) *Counter {
	return New(&Options{
		ImageTokens:    m.ImageTokens,
		PixelsPerToken: m.PixelsPerToken,
		Tiles:          m.Provider == "openai" && m.ImageTokens > 0 && m.PixelsPerToken == 0,
	})
}

// Count returns the number of tokens of a text. It takes time linear in the
// text's length, whatever is in it. Of a text of more than a megabyte one byte in
// eight of the rest is counted, and the size is right to about two percent.
func (c *Counter) Count(text string) int { return o200k().count(text) }
