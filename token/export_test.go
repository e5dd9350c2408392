package token

// CountCold counts a text with an empty cache.
func CountCold(text string) int {
	v := &vocabulary{ranks: load().ranks}
	return v.countAll(text)
}
