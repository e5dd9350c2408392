package furl

// Cost is what a usage costs at these prices, in US dollars. Unknown prices
// cost nothing; ask Known first where that makes a difference.
func (p Prices) Cost(u Usage) float64 {
	return (float64(u.Input)*p.Input +
		float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite +
		float64(u.CacheWrite1h)*p.CacheWrite1h +
		float64(u.Output)*p.Output) / 1e6
}

// Complete fills in cache prices that were not given, so that what is cached
// is not taken to be free: reads and writes then cost what fresh input costs,
// one-hour writes what other writes cost.
func (p Prices) Complete() Prices {
	if p.CacheRead == 0 {
		p.CacheRead = p.Input
	}
	if p.CacheWrite == 0 {
		p.CacheWrite = p.Input
	}
	if p.CacheWrite1h == 0 {
		p.CacheWrite1h = p.CacheWrite
	}
	return p
}

// PricesFor returns the prices of a request whose prompt has that many of the
// provider's tokens: some providers charge more for the whole request once
// its prompt is long.
func (m *Model) PricesFor(prompt int) Prices {
	if m.LongAbove > 0 && prompt > m.LongAbove {
		return m.LongPrices
	}
	return m.Prices
}

// Cost is what a request with this usage costs, in US dollars.
func (m *Model) Cost(u Usage) float64 { return m.PricesFor(u.Prompt()).Cost(u) }
