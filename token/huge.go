package token

// Texts larger than any context window are counted in part: beyond exactText
// one eighth of the rest, and of a run without a break one eighth of the
// pieces beyond exactRun. One stretch of each eight consecutive ones is
// counted, so that a part unlike the others is represented. Which one does
// not depend on the content, so that equal texts have equal sizes everywhere,
// and is not at a fixed interval, which the text may have too.
const (
	exactText = 1 << 20   // bytes of a text that are all counted
	exactRun  = 128 << 10 // bytes of a run that are all counted
	stretch   = 1 << 10   // bytes that are counted at a time after that
	oneOf     = 8         // stretches
)

// estimate returns the approximate number of tokens of a text: the first
// bytes are counted, and one stretch in eight of the rest.
func (e *encoder) estimate(text string) int {
	end := breakBefore(text, exactText)
	return e.exact(text[:end]) + share(text[end:], stretch, breakBefore, e.exact)
}

// run returns the number of tokens of a very long piece, of which only a part
// is merged at a time.
func (e *encoder) run(piece string) int {
	n, left := 0, exactRun
	for ; len(piece) > maxPiece && left > 0; left -= maxPiece {
		end := cut(piece, maxPiece)
		n += e.chunk(piece[:end])
		piece = piece[end:]
	}
	if len(piece) <= maxPiece {
		return n + e.encode(piece)
	}
	return n + share(piece, maxPiece, cut, e.chunk)
}

// chunk counts a part of a run. Runs mostly repeat a few characters, so the
// last count is often right for the next part.
func (e *encoder) chunk(part string) int {
	h := hashOf(part)
	n, ok := e.cache.get(h)
	if !ok {
		n = e.encode(part)
		e.cache.put(h, n)
	}
	return n
}

// share counts one of each eight stretches of a text, and assumes that the
// others have the same density. at returns where a stretch of about the given
// size ends.
func share(text string, size int, at func(string, int) int, count func(string) int) int {
	total, bytes, tokens := len(text), 0, 0
	for i := uint32(0); len(text) > 0; i++ {
		end := len(text)
		if end > size {
			end = at(text, size)
		}
		// The last bits of the product differ from one group of eight to the
		// next.
		if i%oneOf == i/oneOf*0x9E3779B1>>29%oneOf || bytes == 0 && end == len(text) {
			bytes += end
			tokens += count(text[:end])
		}
		text = text[end:]
	}
	if bytes == 0 {
		return 0
	}
	return int(float64(tokens) * float64(total) / float64(bytes))
}

// breakLook is how far before an index a break is searched.
const breakLook = 256

// breakBefore returns an index up to at at which a piece ends in any text:
// between a letter or digit and a space, between a digit and a letter,
// between a letter and a digit, or after a line end and before a letter or
// digit. If there is none nearby, it returns an index that does not split a
// character.
func breakBefore(s string, at int) int {
	for i := at; i > max(0, at-breakLook); i-- {
		a, b := ascii7(s[i-1]), ascii7(s[i])
		switch {
		case a&(letter|digits) != 0 && s[i] == ' ',
			a&digits != 0 && b&letter != 0, a&letter != 0 && b&digits != 0,
			s[i-1] == '\n' && b&(letter|digits) != 0:
			return i
		}
	}
	return cut(s, at)
}

// ascii7 returns the class of an ASCII byte, 0 for others.
func ascii7(b byte) class {
	if b >= 0x80 {
		return 0
	}
	return ascii[b]
}
