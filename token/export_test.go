package token

// CountCold counts a text with an empty cache.
func CountCold(text string) int {
	e := &encoder{vocabulary: o200k().vocabulary}
	return e.count(text)
}

// CountFirst counts a text as the first one of a process.
func CountFirst(text string) int {
	e := &encoder{vocabulary: newVocabulary()}
	return e.count(text)
}

// CountExact counts all of a text, however large it is.
func CountExact(text string) int { return o200k().exact(text) }
