package furl

import (
	"time"
	"unicode/utf8"
)

// Effect is what a reduction newly hides on a path: what was shown, as
// recorded or in place, and no longer is.
type Effect struct {
	// Messages go behind the reduction's marks, in order. A message that
	// carries results and then words counts where its first block goes.
	Messages []Seq
	// From and To are when the first and last of them were recorded.
	From, To time.Time
	// Blocks show another text in place, or nothing; Chars is by how many
	// characters that is shorter than their recorded words.
	Blocks, Chars int
	// Tokens is the recorded size of all that, as counted.
	Tokens int
}

// Effect tells what the reduction would newly hide on the state's path, or
// why it cannot be applied there.
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
// blocks that it stands for, one by one.
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
