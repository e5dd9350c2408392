package web_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// ribbon is the JSON of the ribbon.
type ribbon struct {
	Size, Window, Trigger, Target, Request int
	Kinds                                  []string
	Kind, Tokens, Record, Block, Hidden    []int
	By                                     []furl.Seq
}

// curve is the JSON of the curve.
type curve struct {
	Size, Without, Estimated, Window, Cost, Input, Read, Write, Break []int
	Time                                                              []int64
	Breaks                                                            []string
	Reductions                                                        []struct {
		Seq     furl.Seq
		Request int
		Line    string
	}
}

func getJSON[T any](t testing.TB, url string) (v T) {
	t.Helper()
	status, text := get(t, url)
	if status != 200 {
		t.Fatalf("%s: status %d: %.300s", url, status, text)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return v
}

// The pictures of real sessions add up to the sizes of prompts, and have every block of the
// path exactly once, visible or hidden.
func TestPicture(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	url := serve(t, all, nil)
	hidden := 0
	for _, s := range importFiles(t, all, "entire-cli/bc-*.gz", "entire-cli/37-*.gz", "agentv/1f-*.jsonl.gz") {
		for _, policy := range []string{"rolling-mask-10", "clear-100k"} {
			if _, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: policy}); err != nil {
				t.Fatalf("%s: %s: %v", s.ID(), policy, err)
			}
		}
		requests, err := s.Requests()
		if err != nil {
			t.Fatal(err)
		}
		log := sessiontest.Log(t, s)
		page := url + "/furl/sessions/" + string(s.ID())
		now := getJSON[ribbon](t, page+"/picture")
		checkPicture(t, now, log.State(), s.Model(s.Meta().Model), s.Context("").Size)
		sum := 0
		for i, tokens := range now.Tokens {
			if now.Hidden[i] == 1 && now.By[i] != 0 {
				sum += tokens
			}
		}
		if want := s.Context("").Hidden; sum != want || want == 0 {
			t.Errorf("%s: the ribbon hides %d tokens, the meter says %d", s.ID(), sum, want)
		}
		for i := 0; i < len(requests); i += 1 + len(requests)/5 {
			q := &requests[i]
			st, err := furl.Fold(log, q.Sent)
			if err != nil {
				t.Fatal(err)
			}
			p := getJSON[ribbon](t, fmt.Sprintf("%s/picture?request=%d", page, q.Number))
			hidden += checkPicture(t, p, st, s.Model(q.Model), q.Size)
			if p.Request != q.Number || p.Window != q.Window || p.Trigger != q.Trigger {
				t.Errorf("%s: request %d, window %d, trigger %d; want %d, %d, %d", s.ID(), p.Request, p.Window, p.Trigger, q.Number, q.Window, q.Trigger)
			}
		}
	}
	if hidden == 0 {
		t.Error("no request's picture has hidden parts")
	}
}

// checkPicture compares a picture with the state that it shows, and returns the number of
// hidden runs.
func checkPicture(t *testing.T, p ribbon, st *furl.State, model furl.Model, size int) (hidden int) {
	t.Helper()
	type block struct {
		pos    furl.Pos
		hidden bool
	}
	got := make(map[block]int)
	sum, record := 0, 0
	for i := range p.Kind {
		record += p.Record[i]
		if p.Tokens[i] < 0 {
			t.Errorf("run %d has %d tokens", i, p.Tokens[i])
		}
		if p.Hidden[i] == 0 {
			sum += p.Tokens[i]
		} else {
			hidden++
		}
		switch k := p.Kinds[p.Kind[i]]; {
		case record == 0 && k != "system" && k != "tools" && k != "summary":
			t.Errorf("run %d of kind %s has no record", i, k)
		case record != 0 && k != "placeholder":
			got[block{furl.Pos{Msg: furl.Seq(record), Block: p.Block[i]}, p.Hidden[i] == 1}]++
		}
		if (p.Kinds[p.Kind[i]] == "summary" || p.Kinds[p.Kind[i]] == "placeholder") && p.By[i] == 0 {
			t.Errorf("run %d has the text of no reduction", i)
		}
	}
	if p.Size != size || sum != size {
		t.Errorf("size %d, the visible runs have %d tokens, want %d", p.Size, sum, size)
	}
	visible := make(map[furl.Pos]bool)
	view := st.View(model)
	for i := range view.Messages {
		for j := range view.Messages[i].Blocks {
			sb := &view.Messages[i].Blocks[j]
			visible[sb.Pos] = sb.By == 0 && (sb.Tokens > 0 || sb.Block.Tokens == 0)
		}
	}
	for i := range st.Len() {
		seq, msg := st.Message(i)
		for j := range msg.Blocks {
			b := block{furl.Pos{Msg: seq, Block: j}, !visible[furl.Pos{Msg: seq, Block: j}]}
			if got[b] != 1 {
				t.Errorf("block %v is there %d times, hidden: %v", b.pos, got[b], b.hidden)
			}
			delete(got, b)
		}
	}
	for b := range got {
		t.Errorf("block %v is not to be there, hidden: %v", b.pos, b.hidden)
	}
	return hidden
}

// A message, its part of the ribbon and the inspector have the same size.
func TestSizesOfParts(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	url := serve(t, all, nil)
	s := importFiles(t, all, "entire-cli/37-*.gz")[0]
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: "rolling-mask-10"}); err != nil {
		t.Fatal(err)
	}
	page := url + "/furl/sessions/" + string(s.ID())
	p := getJSON[ribbon](t, page+"/picture")
	drawn, placeholders := make(map[string]int), make(map[string]int)
	record := 0
	for i := range p.Kind {
		record += p.Record[i]
		switch at := fmt.Sprintf("%d.%d", record, p.Block[i]); {
		case record > 0 && p.Kinds[p.Kind[i]] == "placeholder":
			placeholders[at] = p.Tokens[i]
		case record > 0:
			drawn[at] = p.Tokens[i]
		}
	}
	folded := regexp.MustCompile(`data-at="([0-9.]+)">\s*<details[^>]*><summary>.*<span class="tokens">([0-9,]+)`)
	_, text := get(t, page+"?at=1")
	parts := folded.FindAllStringSubmatch(text, -1)
	for i, m := range parts {
		want, ok := drawn[m[1]]
		got, err := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
		if err != nil || !ok || got < want-1 || got > want+1+placeholders[m[1]] { // the runs of the ribbon are rounded so that they add up; what is hidden is less by the placeholder
			t.Errorf("block %s has %s tokens, its part of the ribbon %d", m[1], m[2], want)
		}
		if i%20 != 0 {
			continue
		}
		if _, text := get(t, page+"/inspect?at="+m[1]); !strings.Contains(text, m[2]+" token") {
			t.Errorf("block %s: the inspector does not say %s tokens", m[1], m[2])
		}
	}
	if len(parts) < 20 {
		t.Errorf("%d parts have a size", len(parts))
	}
}

// The curve has every request, and its lists are of the same length.
func TestCurve(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	url := serve(t, all, nil)
	for _, s := range importFiles(t, all, "entire-cli/bc-*.gz", "agentv/1f-*.jsonl.gz") {
		if _, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: "rolling-mask-10"}); err != nil {
			t.Fatal(err)
		}
		requests, err := s.Requests()
		if err != nil {
			t.Fatal(err)
		}
		c := getJSON[curve](t, url+"/furl/sessions/"+string(s.ID())+"/requests")
		for _, list := range [][]int{c.Size, c.Without, c.Estimated, c.Window, c.Cost, c.Input, c.Read, c.Write, c.Break} {
			if len(list) != len(requests) {
				t.Fatalf("%s: a list has %d elements, want %d", s.ID(), len(list), len(requests))
			}
		}
		at := int64(0)
		for i := range requests {
			q := &requests[i]
			if i == 0 {
				at = q.Time.Unix()
			}
			at += c.Time[i]
			if at != q.Time.Unix() || c.Size[i] != q.Size || c.Size[i]+c.Without[i] != q.SizeWithout || c.Breaks[c.Break[i]] != q.Break {
				t.Errorf("%s: request %d: time %d, size %d, without %d, cache break %q; want %+v", s.ID(), i+1, at, c.Size[i], c.Without[i], c.Breaks[c.Break[i]], q)
			}
			if c.Estimated[i] == 0 && c.Input[i]+c.Read[i]+c.Write[i] != c.Size[i] {
				t.Errorf("%s: request %d: the parts of the prompt do not add up to its size %d", s.ID(), i+1, c.Size[i])
			}
		}
		if last := c.Reductions[len(c.Reductions)-1]; last.Request != 0 || last.Line == "" {
			t.Errorf("%s: the reduction after the last request: %+v", s.ID(), last)
		}
	}
}

// mixedSession is a session of n messages whose sizes differ, as those of real ones do, with
// one reduction.
func mixedSession(t testing.TB, n int) (*session.Sessions, *session.Session) {
	t.Helper()
	all, _ := sessiontest.Open(t, session.Options{Window: 1_000_000})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5", Title: "A mixed session"})
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		return strings.Repeat("word ", 1+int(float64(most)*math.Pow(random.Float64(), 4)))
	}
	msgs := []*furl.Message{sessiontest.Message(t, furl.RoleUser, sessiontest.Text("start"))}
	for i := 1; len(msgs)+2 <= n; i++ {
		id := fmt.Sprint("c", i)
		msgs = append(msgs,
			sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text(text(300)), sessiontest.Call(id, "read", fmt.Sprintf(`{"path":"file-%d","note":%q}`, i, text(100)))),
			sessiontest.Message(t, furl.RoleUser, sessiontest.Result(id, text(1500))))
		if i%40 == 0 {
			msgs[len(msgs)-1] = sessiontest.Message(t, furl.RoleUser, sessiontest.Result(id, text(1500)), sessiontest.Text(text(200)))
		}
	}
	sessiontest.AppendAll(t, s, msgs)
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: "rolling-mask-10"}); err != nil {
		t.Fatal(err)
	}
	return all, s
}

// The data of a session of 10,000 messages are small enough to load at once.
func TestPictureSize(t *testing.T) {
	all, s := mixedSession(t, 10_000)
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	for _, path := range []string{"/picture", "/picture?request=4000", "/requests"} {
		status, text := get(t, page+path, "Accept-Encoding", "gzip")
		t.Logf("%s: %d bytes compressed", path, len(text))
		if status != 200 || !strings.HasPrefix(text, "\x1f\x8b") || len(text) > 150_000 {
			t.Errorf("%s: status %d, %d bytes, want gzip of at most 150,000", path, status, len(text))
		}
	}
}
