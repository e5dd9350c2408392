package policy

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// hideable returns the units that may be hidden whole, oldest first, for which ok
// returns true; nil means all. Units that are kept are not among them.
func hideable(v *furl.View, ok func(*furl.Unit) bool) []furl.Unit {
	var units []furl.Unit
	for i := range v.Units {
		u := &v.Units[i]
		if !u.Protected && u.Hold != furl.Keep && (ok == nil || ok(u)) {
			units = append(units, *u)
		}
	}
	return units
}

// kept returns the units that people asked to keep. They are hidden only if the
// window demands it.
func kept(v *furl.View) []furl.Unit {
	var units []furl.Unit
	for i := range v.Units {
		if u := &v.Units[i]; !u.Protected && u.Hold == furl.Keep {
			units = append(units, *u)
		}
	}
	return units
}

// oldestRun returns units from the front, as many as needed until enough are
// hidden. It returns nil if all of them are markers already.
func oldestRun(units []furl.Unit, enough func(hidden []furl.Unit) bool) []furl.Unit {
	n := 0
	for n < len(units) && (n == 0 || !enough(units[:n])) {
		n++
	}
	if onlyMarks(units[:n]) {
		return nil
	}
	return units[:n]
}

func onlyMarks(units []furl.Unit) bool {
	for i := range units {
		if units[i].Kind != furl.UnitMark {
			return false
		}
	}
	return true
}

// originals counts the recorded messages and tokens that units show or hide.
func originals(units []furl.Unit) (messages, tokens int) {
	for i := range units {
		messages += units[i].Messages
		if units[i].Kind == furl.UnitMark {
			tokens += units[i].Hidden
			continue
		}
		for j := range units[i].Blocks {
			tokens += units[i].Blocks[j].Block.Tokens
		}
	}
	return messages, tokens
}

// firstNew is the index of the first unit of the newest n steps; units before it
// are old. If n is 0, it is the number of units.
func firstNew(v *furl.View, n int) int {
	oldest := v.Steps - n // the newest step that is old
	for i := range v.Units {
		if n > 0 && v.Units[i].Step > oldest {
			return i
		}
	}
	return len(v.Units)
}

// Marker is the item that shows a marker, a user message with the texts, in place of the
// units.
func Marker(v *furl.View, b furl.Budget, units []furl.Unit, texts ...string) furl.Item {
	return markAs(furl.RoleUser, v, b, units, texts...)
}

// markAs is Marker with another role.
func markAs(role furl.Role, v *furl.View, b furl.Budget, units []furl.Unit, texts ...string) furl.Item {
	m := &furl.Message{Role: role}
	for _, text := range texts {
		m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindText, Text: text})
	}
	if b.Counter != nil {
		m.Measure(b.Counter)
	}
	m.Seal()
	return furl.Item{Spans: v.Spans(units...), Show: furl.Mark{Messages: []*furl.Message{m}, At: justBefore(v, units)}}
}

// justBefore is the time of a marker: a millisecond before the first message after
// those that it hides.
func justBefore(v *furl.View, units []furl.Unit) time.Time {
	s := v.State
	spans := v.Spans(units[len(units)-1])
	i, ok := s.Find(spans[len(spans)-1].Last.Msg)
	if !ok {
		return time.Time{}
	}
	// If text stays after hidden results, that is the same message.
	if _, m := s.Message(i); i+1 < s.Len() && spans[len(spans)-1].Last.Block+1 >= len(m.Blocks) {
		i++
	}
	if t := s.Time(i); !t.IsZero() {
		return t.Add(-time.Millisecond)
	}
	return time.Time{}
}

// truncationText is the origin's marker (T2).
func truncationText(n int) string {
	return fmt.Sprintf("[Sliding window truncation: %d messages hidden to reduce context]", n)
}
