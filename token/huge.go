package token

// What is larger than any window is sized in part: a text beyond exactText by
// an eighth of the rest, a run without a break beyond exactRun by an eighth of
// its pieces. Of each eight stretches that follow one another one is counted,
// so that whatever part of the text is unlike the others has its share; which
// one does not go by what is in it, so that the same text has the same size
// everywhere, and not by a fixed step, which the text may have too.
const (
	exactText = 1 << 20   // bytes of a text that are counted
	exactRun  = 128 << 10 // bytes of a run that are counted
	stretch   = 1 << 10   // bytes that are counted in one go behind that
	oneOf     = 8         // stretches
)

// estimate returns about the number of tokens of a text of which the first
// bytes are counted, and one stretch in eight of the rest.
func (e *encoder) estimate(text string) int {
	end := breakBefore(text, exactText)
	return e.exact(text[:end]) + share(text[end:], stretch, breakBefore, e.exact)
}

// run returns the number of tokens of a piece that is longer than others are,
// and of which only so much is merged at once.
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

// chunk counts a part of a run. Runs are mostly of the same few characters, so
// what was counted of one part often holds for the next.
func (e *encoder) chunk(part string) int {
	h := hashOf(part)
	n, ok := e.cache.get(h)
	if !ok {
		n = e.encode(part)
		e.cache.put(h, n)
	}
	return n
}

// share counts one of each eight stretches of a text, and takes the others to
// be as dense. at gives where a stretch of about so many bytes ends.
func share(text string, size int, at func(string, int) int, count func(string) int) int {
	total, bytes, tokens := len(text), 0, 0
	for i := uint32(0); len(text) > 0; i++ {
		end := len(text)
		if end > size {
			end = at(text, size)
		}
		// The last bits of the product differ from one eight to the next.
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

// breakLook is how far in front of an index a break is looked for.
const breakLook = 256

// breakBefore returns an index up to at at which a piece ends whatever the
// text is: between a letter or digit and a space, a digit and a letter, a
// letter and a digit, or behind the end of a line and in front of a letter or
// digit. Where there is none nearby, it is one that does not split a character.
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

// ascii7 is the class of a byte that is a character, none of others.
func ascii7(b byte) class {
	if b >= 0x80 {
		return 0
	}
	return ascii[b]
}
