package furl

import (
	"time"
	"unicode/utf8"
)

// Effect is what a reduction newly hides on a path.
type Effect struct {
	// Messages are replaced by the reduction's marks, in order. A message with
	// results and then text counts where its first block goes.
	Messages []Seq
	// From and To are when the first and last of them were recorded.
	From, To time.Time
	// Blocks show another text in place, or nothing; Chars is how many
	// characters shorter that is.
	Blocks, Chars int
	// Tokens is the recorded size of all that, as counted.
	Tokens int
}

// Effect returns what the reduction would newly hide on the path, or why it
// cannot be applied.
func (s *State) Effect(red *Reduction) (Effect, error) {
	var e Effect
	l, labels, err := s.resolve(s.head+1, red)
	if err != nil {
		return e, err
	}
	for _, p := range l.paints {
		show := red.Items[labels[p.label-s.labels.len()].item].Show
		_, marks := show.(Mark)
		in, _ := show.(In)
		s.cover.within(p.lo, p.hi, func(iv interval) bool {
			if s.isMark(iv.label) || !marks && iv.label != 0 {
				return true // it was hidden before
			}
			e.Tokens += s.tokensIn(iv.lo, iv.hi)
			if !marks {
				e.Blocks += iv.hi - iv.lo
				e.Chars += s.shorter(iv.lo, iv.hi, in.Text)
				return true
			}
			for i := s.msgAt(iv.lo); i < len(s.msgs) && s.base[i] < iv.hi; i++ {
				if s.base[i] < iv.lo {
					continue
				}
				if len(e.Messages) == 0 {
					e.From = s.times[i]
				}
				e.To = s.times[i]
				e.Messages = append(e.Messages, s.seqs[i])
			}
			return true
		})
	}
	return e, nil
}

// shorter is by how many characters a text is shorter than the words of the
// blocks that it represents, one by one.
func (s *State) shorter(lo, hi int, text string) int {
	n, shown := 0, utf8.RuneCountInString(text)
	for ord := lo; ord < hi; ord++ {
		if b := s.block(ord); b != nil {
			chars := utf8.RuneCountInString(b.Text)
			if b.Kind == KindCall {
				chars += utf8.RuneCount(b.Args)
			}
			n += max(0, chars-shown)
		}
	}
	return n
}
