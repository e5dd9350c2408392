package token

import "sync"

// encoder counts the tokens of texts. The module with the vocabulary can
// count too, but encoder is many times as fast, and correct on blank lines,
// which that module splits wrongly.
type encoder struct {
	*vocabulary
	cache pieceCache
}

// o200k is created on first use.
var o200k = sync.OnceValue(func() *encoder { return &encoder{vocabulary: newVocabulary()} })

// count returns the number of tokens of a text. It is an estimate for texts
// larger than any context window.
func (e *encoder) count(text string) int {
	if len(text) > exactText {
		return e.estimate(text)
	}
	return e.exact(text)
}

// exact counts piece by piece.
func (e *encoder) exact(text string) int {
	n := 0
	for len(text) > 0 {
		end := split(text)
		n += e.countPiece(text[:end])
		text = text[end:]
	}
	return n
}

func (e *encoder) countPiece(piece string) int {
	switch {
	case len(piece) == 1:
		return 1 // every byte is a token
	case len(piece) > maxPiece:
		return e.run(piece)
	case len(piece) > longPiece:
		return e.chunk(piece)
	case len(piece) > maxCached:
		return e.encode(piece)
	}
	h := hashOf(piece)
	if n, ok := e.cache.get(h); ok {
		return n
	}
	n := e.encode(piece)
	e.cache.put(h, n)
	return n
}
