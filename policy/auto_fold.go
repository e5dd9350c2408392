package policy

import (
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/toolscript"
)

// A fold replaces steps by markers, one between two messages of the user, and
// lists what was said and called in them, and names out of their results. A marker
// is a user message, so it holds numbers and fixed words only: what a tool returned
// must not come back as words of the user. The list is shown in place of a tool
// result. One of the steps stays visible to carry it: its call, and its result with
// the list for a text. Everything else about that step stays as the model wrote it
// (reasoning, signatures, ids), which every provider accepts.

// carriesList reports whether a step carries the list of a fold. Such a step is
// never folded again, as the marker isn't.
func carriesList(v *furl.View, u *furl.Unit) bool {
	for j := range u.Blocks {
		if _, ok := listIn(v, &u.Blocks[j]); ok {
			return true
		}
	}
	return false
}

// Notes of items that show a list, and one that was shortened.
const (
	wholeList = "the list of "
	shortList = "the shortened list of "
)

// listIn returns the note of the item by which a block shows the list of a fold.
func listIn(v *furl.View, sb *furl.ShownBlock) (note string, ok bool) {
	if sb.By == 0 || sb.Block.Kind != furl.KindResult {
		return "", false
	}
	red, _ := v.State.Reduction(sb.By)
	for i := range red.Items {
		if in, ok := red.Items[i].Show.(furl.In); ok && red.Items[i].Spans[0].First == sb.Pos {
			return in.Note, red.Stage == stageAuto && (strings.HasPrefix(in.Note, wholeList) || strings.HasPrefix(in.Note, shortList))
		}
	}
	return "", false
}

// isOldList reports whether a block shows a list that was not shortened yet.
func isOldList(v *furl.View, sb *furl.ShownBlock) bool {
	note, ok := listIn(v, sb)
	return ok && strings.HasPrefix(note, wholeList)
}

// shorten shows a list without what was said and called, and with its most valuable
// names only.
func (w *autoTexts) shorten(sb *furl.ShownBlock) furl.In {
	note, _ := listIn(w.v, sb)
	head := sb.Text[:strings.IndexAny(sb.Text+"\n", "\n")]
	head = strings.TrimSuffix(strings.TrimSuffix(head, "]"), "; the assistant said and called there:")
	w.shown.add(head)
	text := head
	room := nameBudget{most: int(w.dial.listShare * float64(sb.Tokens)), worth: w.dial.listWorth}
	if names := w.shown.tell(toolscript.ShownTexts(sb), room, w.b.Counter); len(names) > 0 {
		text += "; names in them: " + strings.Join(names, " ")
	}
	in := furl.InPlace(sb.Block, text+"]"+mediaNote(sb.Block.Media), w.b.Counter)
	in.Note = shortList + strings.TrimPrefix(note, wholeList)
	return in
}

// pickCarrier chooses among the candidates the step that carries the list.
func (a *auto) pickCarrier(picked []candidate, m furl.Model) {
	var best *candidate
	var least carrierCost
	for _, c := range stepsOf(picked) {
		if cost := a.carrierCostOf(c, m); cost.below(least) {
			best, least = c, cost
		}
	}
	if best != nil {
		best.carries = true
	}
}

// carrierCost says how well a step would carry a list: rather one that has not
// failed, since the error flag stays and would be about the list, and one that
// takes little room.
type carrierCost struct {
	able   bool // the step has a result
	failed bool
	size   int // of the step without the list, in counted tokens, roughly
}

// below reports whether the step is a better choice than the other one.
func (c carrierCost) below(other carrierCost) bool {
	switch {
	case !c.able || !other.able:
		return c.able
	case c.failed != other.failed:
		return other.failed
	}
	return c.size < other.size
}

func (a *auto) carrierCostOf(c *candidate, m furl.Model) carrierCost {
	bearer := listBearer(c.unit)
	if bearer < 0 {
		return carrierCost{}
	}
	cost := carrierCost{able: true, failed: c.unit.Blocks[bearer].Block.Error}
	for j := range c.unit.Blocks {
		sb := &c.unit.Blocks[j]
		switch kind, goes := a.carrierPart(c, sb, m); {
		case j == bearer:
		case !goes:
			cost.size += sb.Tokens
		case kind != aThought:
			cost.size += min(sb.Tokens, 2*standInTokens)
		}
	}
	return cost
}

// listBearer is the result of a step that shows the list, by its place among
// the unit's blocks: the first that has not failed, else the first. It is -1 if
// there is none.
func listBearer(u *furl.Unit) int {
	first := -1
	for j := range u.Blocks {
		if b := u.Blocks[j].Block; b.Kind == furl.KindResult {
			if !b.Error {
				return j
			}
			if first < 0 {
				first = j
			}
		}
	}
	return first
}

// carrierPart tells whether a block of the step that carries the list is to be
// hidden by itself, the list aside, and as what kind of candidate.
func (a *auto) carrierPart(c *candidate, sb *furl.ShownBlock, m furl.Model) (kind int, ok bool) {
	switch b := sb.Block; b.Kind {
	case furl.KindResult:
		return aResult, sb.By == 0 && sb.Tokens >= smallResult
	case furl.KindCall:
		return aCall, a.inputs && sb.By == 0 && len(b.Args) > minString && longestString(b.Args)/4 >= minString/4
	case furl.KindThinking:
		return aThought, c.spoken && mayDropThinking(m)
	}
	return 0, false
}

// fold hides steps, given from the newest back. It gives the items and how many
// counted tokens they free.
func (w *autoTexts) fold(steps []*candidate) ([]furl.Item, int) {
	var (
		hidden  []*candidate // those that markers hide, in order
		units   []furl.Unit  // all
		carrier *candidate
		visible int // counted tokens of all
	)
	for _, c := range slices.Backward(steps) {
		units, visible = append(units, *c.unit), visible+c.unit.Tokens
		if c.carries {
			carrier = c
			continue
		}
		hidden = append(hidden, c)
	}
	if len(hidden) == 0 || carrier == nil {
		return nil, 0 // what is left of steps of which the rest was not picked
	}
	items, after := w.markers(hidden, carrier)
	count := countOf(len(hidden), "step")
	first, last := units[0], units[len(units)-1]
	kept := keptFromTo(first.Blocks[0].Pos, last.Blocks[len(last.Blocks)-1].Pos, w.b.Recall)
	head := "[hidden: this result and " + count + " of the assistant around it" + kept
	list := w.list(head, units, carrier.unit, int(w.dial.foldShare*float64(visible)))
	bearer := listBearer(carrier.unit)
	sb := &carrier.unit.Blocks[bearer]
	in := furl.InPlace(sb.Block, list+mediaNote(sb.Block.Media), w.b.Counter)
	in.Note = wholeList + count
	items = append(items, inPlace(sb, in)) // right after the last marker, see carriesList
	after += in.Tokens
	for j := range carrier.unit.Blocks {
		sb := &carrier.unit.Blocks[j]
		if j == bearer {
			continue
		}
		size := sb.Tokens
		if kind, ok := w.auto.carrierPart(carrier, sb, w.b.Model); ok {
			part := candidate{unit: carrier.unit, block: sb, kind: kind, newer: carrier.newer}
			if show, n, ok := w.show(&part); ok {
				items, size = append(items, inPlace(sb, show)), n
			}
		}
		after += size
	}
	return items, visible - after
}

// markers gives a marker for each group of steps between two messages of the user,
// and their size in counted tokens.
func (w *autoTexts) markers(hidden []*candidate, carrier *candidate) (items []furl.Item, tokens int) {
	for len(hidden) > 0 {
		group := []furl.Unit{*hidden[0].unit}
		for _, c := range hidden[1:] {
			if w.userBetween(hidden[len(group)-1].at, c.at) {
				break
			}
			group = append(group, *c.unit)
		}
		where := "below"
		if carrier.at < hidden[0].at {
			where = "above"
		}
		marker := Marker(w.v, w.b, group, "[hidden: "+countOf(len(group), "step")+" of the assistant, listed in a tool result "+where+"]")
		items, tokens = append(items, marker), tokens+marker.Show.(furl.Mark).Messages[0].Tokens()
		hidden = hidden[len(group):]
	}
	return items, tokens
}

// userBetween reports whether a message of the user is between two units of the view.
func (w *autoTexts) userBetween(first, last int) bool {
	return slices.ContainsFunc(w.v.Units[first:last], func(u furl.Unit) bool { return u.Kind == furl.UnitUser })
}

// inPlace is the item that shows something else for one block.
func inPlace(sb *furl.ShownBlock, show furl.Show) furl.Item {
	return furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: show}
}

// list tells in a line each what was said and called in the units but the one
// that carries the list, and the names in all of them.
func (w *autoTexts) list(head string, units []furl.Unit, carrier *furl.Unit, most int) string {
	var text strings.Builder
	text.WriteString(head)
	told := newTold()
	w.line(carrier, told) // visible as it is
	lines := false
	for i := range units {
		if units[i].Step == carrier.Step {
			continue
		}
		if line := w.line(&units[i], told); line != "" {
			if !lines {
				text.WriteString("; the assistant said and called there:")
				lines = true
			}
			text.WriteString("\n" + line)
		}
	}
	w.shown.add(text.String())
	names := w.shown.tell(textsOf(units), nameBudget{most: most, worth: w.dial.foldWorth, exact: true}, w.b.Counter)
	if len(names) > 0 {
		text.WriteString("\nnames in them: " + strings.Join(names, " "))
	}
	text.WriteByte(']')
	return text.String()
}

// textsOf gives all that units show.
func textsOf(units []furl.Unit) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range units {
			for j := range units[i].Blocks {
				for text := range toolscript.ShownTexts(&units[i].Blocks[j]) {
					if !yield(text) {
						return
					}
				}
			}
		}
	}
}

// line is a step in short; a call that was told is not told again.
func (w *autoTexts) line(u *furl.Unit, told *told) string {
	said := w.dial.said
	if results(u) == 0 {
		said = w.dial.replied
	}
	failed := make(map[string]bool)
	var media []furl.Media
	for j := range u.Blocks {
		b := u.Blocks[j].Block
		failed[b.ID] = failed[b.ID] || b.Kind == furl.KindResult && seemsFailed(b)
		media = append(media, b.Media...)
	}
	var parts []string
	for j := range u.Blocks {
		b := u.Blocks[j].Block
		what := ""
		switch b.Kind {
		case furl.KindText:
			what = cut(lexer.Fold(b.Text), said)
		case furl.KindCall:
			target, outcome := wholeTarget(b), ""
			if failed[b.ID] {
				outcome = " (failed)"
			}
			if told.again(b.Name + " " + target + outcome) {
				continue
			}
			what = strings.TrimSpace(b.Name+" "+told.brief(target)) + outcome
		}
		if what != "" {
			parts = append(parts, what)
		}
	}
	return strings.TrimPrefix(strings.Join(parts, "; ")+mediaNote(media), "\n")
}

// told is what a list has already: calls, and by their last elements the paths of files.
type told struct {
	calls map[string]bool
	paths map[string]string
}

func newTold() *told { return &told{make(map[string]bool), make(map[string]string)} }

// again reports whether the list has a call, or a part of one, already, and notes it.
func (t *told) again(call string) bool {
	had := t.calls[call]
	t.calls[call] = true
	return had
}

// brief is the target of a call in at most maxTarget characters, without what the list
// has already: of the path of a file all but its last element, and the change of the
// folder before a command.
func (t *told) brief(target string) string {
	if cd, command, ok := strings.Cut(target, " && "); ok && strings.HasPrefix(cd, "cd ") && t.again(cd) {
		target = command
	}
	words, size := strings.Split(target, " "), 0
	for i, word := range words {
		path := strings.TrimSuffix(word, ",")
		if isFilePath(path) {
			name := path[strings.LastIndexByte(path, '/')+1:]
			if t.paths[name] == path {
				words[i] = name + word[len(path):]
			} else if size+len(path) < maxTarget { // or it is cut off
				t.paths[name] = path
			}
		}
		size += len(words[i]) + 1
	}
	return cut(strings.Join(words, " "), maxTarget)
}

// isFilePath reports whether a word is the path of a file in a folder: src/a.go.
func isFilePath(word string) bool {
	const marks = "_-.+~@/"
	for _, r := range word {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(marks, r) {
			return false
		}
	}
	slash := strings.LastIndexByte(word, '/')
	dot := strings.LastIndexByte(word, '.')
	return slash > 0 && dot > slash+1 && word[slash+1] != '.'
}
