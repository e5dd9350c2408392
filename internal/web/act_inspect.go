package web

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/policy"
)

// isNow reports whether the moment is the current state, on which people can act.
func (m *moment) isNow() bool { return m.request == 0 && m.branch == 0 }

// actOn returns a button for messages or reductions of the session.
func (m *moment) actOn(what, label, key string, query ...string) button {
	return button{ID: m.s.ID(), What: what, Label: label, Key: key, Query: values(query...)}
}

// reductionActs returns the actions on a reduction.
func (m *moment) reductionActs(r *policy.Reduced) []button {
	if !m.isNow() {
		return nil
	}
	seq := seqKey(r.Seq)
	if r.Lifted {
		return []button{m.actOn("again", "Hide again…", "", "reduction", seq)}
	}
	list := []button{m.actOn("undo", "Undo…", "u", "reduction", seq)}
	if r.Number > 0 && r.Summary != "" && r.Shown {
		list = append(list, m.actOn("edit", "Edit the summary…", "", "reduction", seq))
	}
	return list
}

// blockActs returns the actions on a message or a block.
func (m *moment) blockActs(at string, pos furl.Pos, seen *operation.Seen, on bool) (list []button) {
	seq := seqKey(pos.Msg)
	if m.isNow() && on {
		if seen.Hidden {
			list = append(list, m.actOn("expand", "Expand…", "e", "at", at))
			if by := m.state.ShownBy(pos); by != 0 {
				list = append(list, m.actOn("undo", "Undo reduction "+seqKey(by)+"…", "u", "reduction", seqKey(by)))
			}
		} else {
			if seen.Inside {
				list = append(list, m.actOn("hide", "Hide…", "", "at", at))
			}
			list = append(list, m.actOn("hide", "Hide the step…", "", "at", at, "steps", "1"), m.actOn("compact", "Compact…", "", "at", seq))
		}
		switch seen.Strongest {
		case furl.Pin:
			list = append(list, m.actOn("unpin", "Unpin…", "p", "at", at))
		case furl.Keep:
			list = append(list, m.actOn("pin", "Pin…", "p", "at", at), m.actOn("unpin", "No preference…", "", "at", at))
		default:
			list = append(list, m.actOn("pin", "Pin…", "p", "at", at), m.actOn("prefer", "Prefer…", "", "at", at))
		}
	}
	if m.isNow() {
		list = append(list, m.actOn("redact", "Redact…", "", "at", at))
	}
	return append(list, m.actOn("fork", "Fork here…", "", "at", seq), m.actOn("rewind", "Continue from here…", "", "at", seq))
}

// heldWords says what hold is on a block, "" if none is.
func heldWords(h furl.Hold) string {
	switch h {
	case furl.Pin:
		return "pinned"
	case furl.Keep:
		return "policies prefer to keep it"
	}
	return ""
}
