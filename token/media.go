package token

import (
	"math"
	"strings"

	"github.com/furlhq/furl"
)

// CountMedia returns what an image or a document costs. Images cost by the
// provider's rule for their pixels, or ImageTokens if their size is unknown.
// Documents cost by their bytes: text one token for every four; others,
// mostly PDFs, one token for every 24 base64 characters, which makes a page
// of about 50 kB 2,800 tokens, but at least the 1,500 of one page.
func (c *Counter) CountMedia(m furl.Media) int {
	if m.Kind == furl.KindDocument {
		if strings.HasPrefix(m.Type, "text/") {
			return (max(m.Bytes, 0) + 3) / 4
		}
		return max(m.Bytes/24, 1500)
	}
	if m.Width <= 0 || m.Height <= 0 {
		return c.opts.ImageTokens
	}
	if c.opts.Tiles {
		return c.tiled(float64(m.Width), float64(m.Height))
	}
	pixels := float64(m.Width) * float64(m.Height)
	return min(int(math.Ceil(pixels/float64(c.opts.PixelsPerToken))), c.opts.ImageTokens)
}

// tiled implements the rule of OpenAI's vision guide for high detail.
func (c *Counter) tiled(w, h float64) int {
	scale := min(1, 2048/max(w, h))
	w, h = w*scale, h*scale
	scale = min(1, 768/min(w, h))
	tiles := math.Ceil(w*scale/512) * math.Ceil(h*scale/512)
	tile := float64(c.opts.ImageTokens) / 8.5
	return min(int(math.Round((tiles+0.5)*tile)), c.opts.ImageTokens)
}
