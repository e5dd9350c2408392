package furl

import "slices"

// stack is a list that grows at its end. A fork of it grows by itself: what
// both have is shared, and forking costs what was pushed onto forks before.
type stack[T any] struct {
	base, more []T // one after the other
	forked     bool
}

func (s *stack[T]) len() int { return len(s.base) + len(s.more) }

func (s *stack[T]) at(i int) *T {
	if i < len(s.base) {
		return &s.base[i]
	}
	return &s.more[i-len(s.base)]
}

func (s *stack[T]) push(list ...T) {
	if s.forked {
		s.more = append(s.more, list...)
	} else {
		s.base = append(s.base, list...)
	}
}

func (s *stack[T]) fork() stack[T] {
	return stack[T]{base: s.base, more: slices.Clip(s.more), forked: true}
}

// own makes what is in a fork its own, so that it can be changed.
func (s *stack[T]) own() {
	if s.forked {
		*s = stack[T]{base: slices.Concat(s.base, s.more)}
	}
}
