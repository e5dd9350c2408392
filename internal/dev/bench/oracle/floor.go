package main

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/replay"
)

// saving is what hiding everything at once would save without the price of
// writing what follows.
type saving struct {
	dollars float64
	tokens  int
}

// setCache sets what the prompt of each request had, and what of it was read from
// the cache, without reductions.
func (f *future) setCache(points []replay.Point) {
	for i := range points {
		f.prompt = append(f.prompt, points[i].Tokens)
		f.read = append(f.read, points[i].Read)
	}
}

// lostFrom returns the first unit of a segment that the cache has lost at a request
// whatever a policy does, because it has expired, for example; the number of units
// if it has lost none. Units that are new at the request do not count.
func (f *future) lostFrom(seg *segment, t int, b *furl.Budget) int {
	if t >= len(f.prompt) {
		return len(seg.units)
	}
	written := f.prompt[t] - f.read[t]
	size, at := 0, len(seg.units)
	for i := len(seg.units) - 1; i >= 0; i-- {
		u := &seg.units[i]
		if u.first > t {
			continue
		}
		tokens := b.Of(u.recorded(), u.items())
		if size += tokens; u.first == t {
			continue
		}
		if size > written+f.prompt[t]/50+tokens/2 {
			break
		}
		at = i
	}
	if at < len(seg.units) && f.read[t] > f.prompt[t]*19/20 {
		return len(seg.units)
	}
	return at
}

func (u *unit) recorded() int {
	n := 0
	for _, p := range u.blocks {
		n += p.msg.Blocks[p.block].Tokens
	}
	return n
}

func (u *unit) items() int {
	n := 0
	for _, p := range u.blocks {
		if k := p.msg.Blocks[p.block].Kind; k == furl.KindCall || k == furl.KindResult {
			n++
		}
	}
	return n
}

// addFloor adds what could be saved at a request.
func (f *future) addFloor(seg *segment, t int, b *furl.Budget) {
	lost := f.lostFrom(seg, t, b)
	read, write := readWrite(b)
	for i := range seg.units {
		u := &seg.units[i]
		if u.first > t {
			break
		}
		freed := 0
		for _, it := range f.items(u, b, true, nil) {
			if it.from <= t {
				freed += int(it.freed)
			}
		}
		share := read
		if i >= lost {
			share = write
		}
		tokens := freed
		f.floor.tokens += tokens
		f.floor.dollars += float64(tokens) * share * price.For(&b.Model, f.prompt[t], b.Now).Input / 1e6
	}
}
