package furl

// InPlace gives text to be shown in place of b, measured as Message.Measure
// would measure it there: words and envelope count, what b carries beside its
// words (media, signature) does not. A nil Counter counts four bytes a token.
func InPlace(b *Block, text string, c Counter) In {
	n := envelopeTokens
	if text != "" {
		n += count(c, text)
	}
	if b.Kind == KindCall && b.Name != "" {
		n += count(c, b.Name)
	}
	return In{Text: text, Tokens: n}
}

func count(c Counter, text string) int {
	if c == nil {
		return (len(text) + 3) / 4
	}
	return c.Count(text)
}
