package anthropic

import "github.com/furlhq/furl"

// orderInstructions returns the shown messages in an order that the provider
// accepts. Instructions inside the list must follow a user message and
// precede an assistant message or the end (validator.system). If the steps
// after them are hidden, a marker or later user text follows them instead;
// they are then moved after that. late contains the new positions of moved
// instructions. A view without moves is returned unchanged.
func orderInstructions(list []furl.Shown) (out []furl.Shown, late map[int]bool) {
	var held []furl.Shown
	for i := range list {
		s := &list[i]
		if isInstruction(s) && displaced(list[i:]) {
			if late == nil {
				late = make(map[int]bool)
				out = append(make([]furl.Shown, 0, len(list)), list[:i]...)
			}
			held = append(held, *s)
			continue
		}
		if late == nil {
			continue
		}
		if !joins(s) && !isInstruction(s) {
			out, held = release(out, held, late)
		}
		out = append(out, *s)
	}
	if late == nil {
		return list, nil
	}
	out, _ = release(out, held, late)
	return out, late
}

func release(out, held []furl.Shown, late map[int]bool) (list, none []furl.Shown) {
	for i := range held {
		late[len(out)] = true
		out = append(out, held[i])
	}
	return out, held[:0]
}

// isInstruction reports whether a shown message is one of the client's with
// the role system.
func isInstruction(s *furl.Shown) bool {
	return s.Index >= 0 && s.Msg.Role == furl.RoleSystem && s.Msg.Format == furl.FormatAnthropic && s.Msg.Raw != nil
}

// displaced reports whether the instructions at the start of list are
// followed by user text that did not follow them when they were recorded.
func displaced(list []furl.Shown) bool {
	n := 1
	for n < len(list) && isInstruction(&list[n]) && list[n].Index == list[n-1].Index+1 {
		n++
	}
	if n == len(list) {
		return false
	}
	next := &list[n]
	if isInstruction(next) {
		return displaced(list[n:])
	}
	return joins(next) && next.Index != list[n-1].Index+1
}
