// Package token computes the size of what a model reads: it counts the tokens
// of texts, images and documents without the network, and corrects the counts
// by the usage that providers report.
//
// Counting uses OpenAI's o200k_base vocabulary for every model, because other
// vendors do not publish theirs. It is a measure of length that follows words
// rather than bytes; Calibration converts it into the provider's tokens.
package token

import "github.com/furlhq/furl"

// Options say how images are billed, which differs by model. Texts are
// counted the same for all.
type Options struct {
	// ImageTokens is the highest cost of one image, and the cost of an image
	// of unknown size. If zero, 1600.
	ImageTokens int
	// PixelsPerToken is how many pixels make a token. If zero, 750.
	PixelsPerToken int
	// Tiles means that images are billed in tiles of 512 by 512 pixels, after
	// scaling to at most 2048 by 2048 with a short side of at most 768, plus
	// half a tile. ImageTokens is then the price of eight and a half tiles.
	Tiles bool
}

// Counter counts tokens. It implements furl.Counter, counts images and
// documents too, and is safe for concurrent use. The first count initialises the vocabulary
// (3 ms and 2.5 MB), which all counters share.
type Counter struct {
	opts Options
}

var _ furl.Counter = (*Counter)(nil)

// New returns a counter. Nil options mean defaults.
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

// For returns a counter that sizes images as the model's provider does. An
// OpenAI model with a price per image and none per pixel is billed in tiles.
func For(m *furl.Model) *Counter {
	return New(&Options{
		ImageTokens:    m.ImageTokens,
		PixelsPerToken: m.PixelsPerToken,
		Tiles:          m.Provider == "openai" && m.ImageTokens > 0 && m.PixelsPerToken == 0,
	})
}

// Count returns the number of tokens of a text. It takes time linear in the
// length of the text, whatever it contains. Of a text of more than a
// megabyte, one eighth of the rest is counted, and the result is accurate to
// about two percent.
func (c *Counter) Count(text string) int { return o200k().count(text) }
