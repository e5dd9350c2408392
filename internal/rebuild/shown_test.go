package rebuild

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// What furl shows in place of results is not stored once more: it is in the
// reduction's record.
func TestShownTextsOnce(t *testing.T) {
	m := newMemory()
	var theirs, ours []string
	for n := range 30 {
		e := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat(fmt.Sprint("line ", n), 200))
		m.say(e)
		theirs, ours = append(theirs, e), append(ours, e)
	}
	m.exchange(body(plain, theirs), body(plain, theirs))
	red := &furl.Reduction{Stage: "mask"}
	for n := range 20 {
		text := fmt.Sprintf("[hidden: file %d, \"quoted\",\n%s]", n, strings.Repeat("a name ", 20))
		at := furl.Pos{Msg: furl.Seq(n + 1)}
		red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: text}})
		ours[n] = fmt.Sprintf(`{"role":"user","content":%q}`, text)
	}
	red.Items = append(red.Items, furl.Item{Show: furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, strings.Repeat("a summary ", 50))}}})
	ours = append([]string{fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("a summary ", 50))}, ours...)
	m.add(red)
	sent := body(plain, ours)
	if stored := m.exchange(body(plain, theirs), sent); stored > 20*25+100 {
		t.Errorf("20 hidden results and a mark store %d bytes", stored)
	}
	got, err := Body(m.log, furl.Seq(len(m.log)), true, m.content)
	if err != nil || string(got) != sent {
		t.Errorf("%v: %s", err, got)
	}
}
