package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// rooTask is a task of Roo Code: its two lists, changed as Roo Code changes
// them. What it does is written from the behaviour that Roo Code documents.
type rooTask struct {
	rnd  *rand.Rand
	now  int
	ids  int
	api  []rooEntry
	ui   []map[string]any
	tail bool // Zoo Code: a summary keeps the newest messages after it
}

// rooEntry is an element of api_conversation_history.json.
type rooEntry struct {
	Role             string `json:"role"`
	Content          any    `json:"content"` // a string or []rooBlock
	TS               int    `json:"ts"`
	IsSummary        bool   `json:"isSummary,omitempty"`
	CondenseID       string `json:"condenseId,omitempty"`
	CondenseParent   string `json:"condenseParent,omitempty"`
	IsMarker         bool   `json:"isTruncationMarker,omitempty"`
	TruncationID     string `json:"truncationId,omitempty"`
	TruncationParent string `json:"truncationParent,omitempty"`
}

type rooBlock = map[string]any

// blocks returns the content as blocks.
func (m rooEntry) blocks() []rooBlock {
	switch c := m.Content.(type) {
	case string:
		return []rooBlock{{"type": "text", "text": c}}
	case []rooBlock:
		return c
	case []any: // read back from JSON
		var list []rooBlock
		for _, b := range c {
			list = append(list, b.(rooBlock))
		}
		return list
	}
	return nil
}

func (t *rooTask) id(kind string) string { t.ids++; return fmt.Sprintf("%s-%d", kind, t.ids) }

func (t *rooTask) tick() int { t.now += 3 + t.rnd.IntN(4000); return t.now }

func (t *rooTask) say(what, text string) map[string]any {
	e := map[string]any{"ts": t.tick(), "type": "say", "say": what, "text": text}
	t.ui = append(t.ui, e)
	return e
}

// open returns the ids of the calls of the last message.
func (t *rooTask) open() (ids []string) {
	last := t.api[len(t.api)-1]
	for _, b := range last.blocks() {
		if last.Role == "assistant" && b["type"] == "tool_use" {
			ids = append(ids, b["id"].(string))
		}
	}
	return ids
}

func (t *rooTask) user() {
	var parts []rooBlock
	for _, id := range t.open() {
		r := rooBlock{"type": "tool_result", "tool_use_id": id, "content": "out " + id}
		if t.rnd.IntN(4) == 0 {
			r["content"], r["is_error"] = []rooBlock{{"type": "text", "text": "out " + id}}, true
		}
		parts = append(parts, r)
	}
	if len(parts) == 0 {
		name := t.id("u")
		t.say("user_feedback", name)
		if t.rnd.IntN(4) == 0 {
			t.api = append(t.api, rooEntry{Role: "user", Content: name + " plain", TS: t.tick()})
			return
		}
		parts = append(parts, rooBlock{"type": "text", "text": name})
	}
	if t.rnd.IntN(5) > 0 {
		parts = append(parts, rooBlock{"type": "text", "text": "details " + t.id("e")})
	}
	t.api = append(t.api, rooEntry{Role: "user", Content: parts, TS: t.tick()})
}

func (t *rooTask) assistant() {
	t.say("api_req_started", "{}")
	var parts []rooBlock
	if t.rnd.IntN(3) == 0 {
		parts = append(parts, rooBlock{"type": "reasoning", "text": "hm"})
	}
	calls := t.rnd.IntN(4)
	if calls == 0 || t.rnd.IntN(2) == 0 {
		parts = append(parts, rooBlock{"type": "text", "text": t.id("a")})
	}
	for range calls {
		parts = append(parts, rooBlock{"type": "tool_use", "id": t.id("call"), "name": "read_file", "input": rooBlock{"path": "f"}})
	}
	t.api = append(t.api, rooEntry{Role: "assistant", Content: parts, TS: t.tick()})
	t.say("text", ".")
}

// truncate hides half of the visible messages but the first, an even number.
func (t *rooTask) truncate(share float64) {
	var visible []int
	for i, m := range t.api {
		if m.TruncationParent == "" && !m.IsMarker {
			visible = append(visible, i)
		}
	}
	n := int(float64(len(visible)-1) * share)
	if n -= n % 2; n <= 0 {
		return
	}
	id := t.id("T")
	for _, i := range visible[1 : n+1] {
		t.api[i].TruncationParent = id
	}
	at, ts := len(t.api), t.tick()
	if n+1 < len(visible) {
		at = visible[n+1]
		ts = t.api[at].TS
	}
	t.api = slices.Insert(t.api, at, rooEntry{Role: "user", Content: fmt.Sprintf("[Sliding window truncation: %d messages hidden to reduce context]", n), TS: ts - 1, IsMarker: true, TruncationID: id})
	t.say("sliding_window_truncation", "")["contextTruncation"] = rooBlock{"truncationId": id, "messagesRemoved": n, "prevContextTokens": 100000, "newContextTokens": 50000}
}

// condense tags everything and adds a summary at the end. Zoo Code keeps the
// last six messages after it, or more if their calls are among those before.
func (t *rooTask) condense() {
	since := len(t.api)
	for i := len(t.api) - 1; i >= 0; i-- {
		if t.api[i].IsSummary {
			since = len(t.api) - i
			break
		}
	}
	if since <= 2 {
		return
	}
	at := len(t.api)
	if t.tail && since >= 10 {
		at = t.boundary(len(t.api)-since, len(t.api)-6)
	}
	id := t.id("C")
	for i := range t.api[:at] {
		if t.api[i].CondenseParent == "" {
			t.api[i].CondenseParent = id
		}
	}
	parts := []rooBlock{{"type": "text", "text": "## Conversation Summary\n" + id}}
	if t.rnd.IntN(2) == 0 {
		parts = append(parts, rooBlock{"type": "text", "text": "details " + t.id("s")})
	}
	t.api = slices.Insert(t.api, at, rooEntry{Role: "user", Content: parts, TS: t.api[len(t.api)-1].TS + 1, IsSummary: true, CondenseID: id})
	t.now = max(t.now, t.api[at].TS)
	t.say("condense_context", "")["contextCondense"] = rooBlock{"condenseId": id, "summary": id, "prevContextTokens": 100000, "newContextTokens": 500, "cost": 0.1}
}

func (t *rooTask) boundary(from, want int) int {
	if t.api[from].IsSummary {
		from++
	}
	for i := want; i >= max(from, len(t.api)-12); i-- {
		if len(orphans(t.api[i:])) == 0 {
			return i
		}
	}
	for want < len(t.api) && len(orphans(t.api[want:])) > 0 {
		want++
	}
	return want
}

// orphans returns the results whose calls are not in the list.
func orphans(list []rooEntry) map[string]bool {
	calls, lost := map[string]bool{}, map[string]bool{}
	for _, m := range list {
		for _, b := range m.blocks() {
			if b["type"] == "tool_use" {
				calls[b["id"].(string)] = true
			}
		}
	}
	for _, m := range list {
		for _, b := range m.blocks() {
			if id, ok := b["tool_use_id"].(string); ok && !calls[id] {
				lost[id] = true
			}
		}
	}
	return lost
}

// rewind deletes an entry of the chat and all that follow it.
func (t *rooTask) rewind() {
	if len(t.ui) < 3 {
		return
	}
	at := 1 + t.rnd.IntN(len(t.ui)-1)
	cut, gone := t.ui[at]["ts"].(int), map[any]bool{}
	for _, e := range t.ui[at:] {
		for _, field := range []string{"contextCondense", "contextTruncation"} {
			if c, ok := e[field].(rooBlock); ok {
				gone[c["condenseId"]], gone[c["truncationId"]] = true, true
			}
		}
	}
	t.ui = t.ui[:at]
	cut = t.cutoff(cut)
	t.api = slices.DeleteFunc(t.api, func(m rooEntry) bool {
		return m.TS >= cut || m.IsSummary && gone[m.CondenseID] || m.IsMarker && gone[m.TruncationID]
	})
	t.clean()
}

// cutoff moves a cut to the turn that it belongs to.
func (t *rooTask) cutoff(cut int) int {
	assistant := 0
	for _, m := range t.api {
		if m.Role == "assistant" && m.TS < cut {
			assistant = max(assistant, m.TS)
		}
	}
	for _, m := range t.api {
		if assistant > 0 && m.Role == "user" && m.TS > assistant && m.TS < cut {
			return assistant + 1
		}
	}
	for _, m := range t.api {
		if m.Role == "user" && m.TS >= cut {
			return m.TS
		}
	}
	return cut
}

// clean removes tags whose summary or marker is gone.
func (t *rooTask) clean() {
	ids := rooIDs(t.api)
	for i := range t.api {
		m := &t.api[i]
		if !ids[m.CondenseParent] {
			m.CondenseParent = ""
		}
		if !ids[m.TruncationParent] {
			m.TruncationParent = ""
		}
	}
}

func rooIDs(list []rooEntry) map[string]bool {
	ids := map[string]bool{}
	for _, m := range list {
		if m.IsSummary {
			ids[m.CondenseID] = true
		}
		if m.IsMarker {
			ids[m.TruncationID] = true
		}
	}
	delete(ids, "")
	return ids
}

// rooSends returns the messages that Roo Code sends of a history.
func rooSends(list []rooEntry) (sent []rooEntry) {
	from := 0
	for i, m := range list {
		if m.IsSummary {
			from = i
		}
	}
	list = list[from:]
	fresh := len(list) > 0 && list[0].IsSummary
	ids, lost := rooIDs(list), orphans(list)
	for _, m := range list {
		if ids[m.TruncationParent] || !fresh && ids[m.CondenseParent] {
			continue
		}
		if fresh && m.Role == "user" {
			kept := slices.DeleteFunc(slices.Clone(m.blocks()), func(b rooBlock) bool { id, _ := b["tool_use_id"].(string); return lost[id] })
			if m.Content = kept; len(kept) == 0 {
				continue
			}
		}
		sent = append(sent, m)
	}
	return sent
}

func newRooTask(seed uint64) *rooTask {
	t := &rooTask{rnd: rand.New(rand.NewPCG(seed, 29)), now: 1767225600000}
	t.tail = seed%3 == 0
	t.say("text", "The task.")
	t.api = append(t.api, rooEntry{Role: "user", TS: t.tick(), Content: []rooBlock{
		{"type": "text", "text": "<task>The task.</task>"}, {"type": "text", "text": "<model>claude-sonnet-4-5</model>"}}})
	for range 5 + t.rnd.IntN(45) {
		switch op := t.rnd.IntN(20); {
		case len(t.api) == 0:
			return newRooTask(seed + 1_000_000)
		case op == 0:
			t.condense()
		case op == 1:
			t.truncate(0.5)
		case op == 2:
			t.truncate(0.25)
		case op == 3:
			t.rewind()
		case t.api[len(t.api)-1].Role == "user" || t.rnd.IntN(60) == 0:
			t.assistant()
		default:
			t.user()
		}
	}
	if len(t.api) == 0 {
		return newRooTask(seed + 1_000_000)
	}
	return t
}

// files writes the two files of a task.
func (t *rooTask) files(test *testing.T, dir string) string {
	test.Helper()
	for name, list := range map[string]any{"api_conversation_history.json": t.api, "ui_messages.json": t.ui} {
		data, err := json.Marshal(list)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			test.Fatal(err)
		}
	}
	return filepath.Join(dir, "api_conversation_history.json")
}

// rooLines returns messages as lines, one for each block; successive messages
// of a role are one.
func rooLines(list []rooEntry) (lines []string) {
	for _, m := range list {
		for _, b := range m.blocks() {
			switch b["type"] {
			case "text":
				lines = append(lines, m.Role+" "+b["text"].(string))
			case "tool_use":
				lines = append(lines, "call "+b["id"].(string))
			case "tool_result":
				lines = append(lines, "result "+b["tool_use_id"].(string))
			}
		}
	}
	return lines
}

func viewLines(v *furl.View) (lines []string) {
	for i := range v.Messages {
		m := &v.Messages[i]
		for _, b := range m.Blocks {
			switch word := b.Words(); b.Block.Kind {
			case furl.KindCall:
				lines = append(lines, "call "+b.Block.ID)
			case furl.KindResult:
				if word == noResult || word == hiddenText {
					word = "none"
				} else {
					word = "result"
				}
				lines = append(lines, word+" "+b.Block.ID)
			default:
				lines = append(lines, string(m.Msg.Role)+" "+word)
			}
		}
	}
	return lines
}

// explained reports whether two lists differ only in what formats.md explains: a
// result without its call is not sent, a call without a result gets one, two
// successive replies have a text between them, and a marker is in the place of the
// first message that it hides.
func explained(roo, view []string) bool {
	var a []string
	calls := map[string]bool{}
	for _, l := range roo {
		if id, ok := strings.CutPrefix(l, "call "); ok {
			calls[id] = true
		}
		if id, ok := strings.CutPrefix(l, "result "); !ok || calls[id] {
			a = append(a, l)
		}
	}
	b := slices.DeleteFunc(slices.Clone(view), func(l string) bool {
		return strings.HasPrefix(l, "none ") || l == "user "+nothingBetween
	})
	if slices.Equal(a, b) {
		return true
	}
	marker := func(l string) bool { return strings.HasPrefix(l, "user [Sliding window truncation") }
	all := slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	return all && slices.Equal(slices.DeleteFunc(a, marker), slices.DeleteFunc(b, marker))
}

// Random histories, changed as Roo Code changes them: furl shows what Roo Code
// sends, but for the differences that formats.md explains.
func TestRooSends(t *testing.T) {
	n := 150
	switch {
	case os.Getenv("FURL_MARKS") != "":
		n = 5000
	case raceDetector:
		n = 10
	}
	dir := t.TempDir()
	kinds := map[string]int{}
	for seed := range uint64(n) {
		task := newRooTask(seed)
		rec, err := ReadFile(task.files(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		s := only(t, rec)
		want, got := rooLines(rooSends(task.api)), viewLines(s.Log.State().View(furl.Model{}))
		if slices.Equal(want, got) {
			kinds["equal"]++
			continue
		}
		if explained(want, got) {
			kinds["explained"]++
			continue
		}
		if kinds["different"]++; kinds["different"] <= 3 {
			data, _ := json.Marshal(task.api)
			t.Errorf("seed %d: the model sees\n%s\nRoo Code sends\n%s\nof %s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"), data)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %d of %d", k, kinds[k], n)
	}
}
