package furl_test

import (
	"testing"

	"github.com/furlhq/furl"
)

// bytesCounter counts one token per byte, which makes sums easy to follow.
type bytesCounter struct{}

func (bytesCounter) Count(text string) int       { return len(text) }
func (bytesCounter) CountMedia(m furl.Media) int { return 1000 }

func TestMeasure(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    furl.Block
		want int
	}{
		{"text", furl.Block{Text: "12345"}, 9},
		{"call", furl.Block{Kind: furl.KindCall, Name: "Read", Args: []byte(`{"a":1}`)}, 15},
		{"image", furl.Block{Kind: furl.KindImage, Media: make([]furl.Media, 2)}, 2004},
		{"thinking in full", furl.Block{Kind: furl.KindThinking, Text: "1234567890", Signature: 300}, 14},
		{"thinking in summary", furl.Block{Kind: furl.KindThinking, Text: "1234567890", Signature: 2480}, 404},
		{"thinking withheld", furl.Block{Kind: furl.KindThinking, Signature: 1380}, 204},
		{"a short signature", furl.Block{Kind: furl.KindThinking, Signature: 8}, 4},
		{"encrypted content", furl.Block{Kind: furl.KindOpaque, Text: "123", Signature: 400}, 107},
	} {
		m := &furl.Message{Blocks: []furl.Block{tt.b}}
		m.Measure(bytesCounter{})
		if got := m.Tokens(); got != tt.want {
			t.Errorf("%s: got %d tokens, want %d", tt.name, got, tt.want)
		}
		m.Measure(nil) // counted once in its life
	}
}
