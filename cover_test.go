package furl

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A cover painted interval by interval says of each ordinal what an array
// painted the plain way says.
func TestPaintLikeAnArray(t *testing.T) {
	const size = 60
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var c cover
		var plain [size]int
		for layer := 1; layer <= 1+rng.IntN(8); layer++ {
			var ivs []interval
			for lo := rng.IntN(size); lo < size && len(ivs) < 5; {
				hi := min(size, lo+1+rng.IntN(8))
				iv := interval{lo, hi, rng.IntN(layer + 1)}
				ivs = append(ivs, iv)
				for i := lo; i < hi; i++ {
					plain[i] = iv.label
				}
				lo = hi + rng.IntN(6)
			}
			before := append(cover(nil), c...)
			next := c.paint(ivs)
			for i := range before {
				if before[i] != c[i] {
					t.Fatalf("seed %d: painting changed the cover it started from", seed)
				}
			}
			c = next
			for i := range plain {
				if got := c.at(i); got != plain[i] {
					t.Fatalf("seed %d, layer %d: ordinal %d has label %d, want %d\n%v\n%v", seed, layer, i, got, plain[i], ivs, c)
				}
			}
			for i := 1; i < len(c); i++ {
				if c[i].start <= c[i-1].start || c[i].label == c[i-1].label {
					t.Fatalf("seed %d: runs are not in order or not joined: %v", seed, c)
				}
			}
			lo := rng.IntN(size)
			at := lo
			c.within(lo, size, func(iv interval) bool {
				if iv.lo != at {
					t.Fatalf("seed %d: a run begins at %d, want %d", seed, iv.lo, at)
				}
				for ; at < iv.hi; at++ {
					if plain[at] != iv.label {
						t.Fatalf("seed %d: within says %d of %d, want %d", seed, iv.label, at, plain[at])
					}
				}
				return true
			})
			if at != size {
				t.Fatalf("seed %d: within stopped at %d of %d", seed, at, size)
			}
		}
	}
}

func (s *stack[T]) all() []T {
	var list []T
	for i := range s.len() {
		list = append(list, *s.at(i))
	}
	return list
}

// Forks share what they began with and nothing else.
func TestStack(t *testing.T) {
	var s stack[int]
	s.push(1, 2)
	a := s.fork()
	a.push(3)
	b := a.fork()
	b.push(4)
	c := a.fork()
	c.push(5, 6)
	s.push(7)
	d := c.fork()
	d.own()
	*d.at(0) = 8
	d.push(9)
	for name, tt := range map[string]struct{ got, want []int }{
		"trunk":         {s.all(), []int{1, 2, 7}},
		"fork":          {a.all(), []int{1, 2, 3}},
		"fork of fork":  {b.all(), []int{1, 2, 3, 4}},
		"another":       {c.all(), []int{1, 2, 3, 5, 6}},
		"on its own":    {d.all(), []int{8, 2, 3, 5, 6, 9}},
		"a new trunk's": {new(stack[int]).all(), nil},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
}
