package recall

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/fidelity"
)

// tally sums up the ranks of the first right hits.
type tally struct {
	queries, five, ten int
	reciprocal         float64
}

func (c *tally) add(hits []Hit, right func(Hit) bool) {
	c.queries++
	at := slices.IndexFunc(hits, right)
	if at < 0 {
		return
	}
	c.reciprocal += 1 / float64(at+1)
	if at < 5 {
		c.five++
	}
	if at < 10 {
		c.ten++
	}
}

func (c *tally) rates() (five, ten, mrr float64) {
	n := float64(max(c.queries, 1))
	return float64(c.five) / n, float64(c.ten) / n, c.reciprocal / n
}

func (c *tally) check(t *testing.T, what string, five, ten, mrr float64) {
	t.Helper()
	a, b, m := c.rates()
	t.Logf("%s: %d queries, hit@5 %.3f, hit@10 %.3f, MRR %.3f", what, c.queries, a, b, m)
	if a < five || b < ten || m < mrr {
		t.Errorf("%s: below hit@5 %.3f, hit@10 %.3f or MRR %.3f", what, five, ten, mrr)
	}
}

// QMSum: questions about meetings, with the turns that answer them.
func TestQMSum(t *testing.T) {
	var bare, named tally
	for line := range bytes.Lines(recordings.Read(t, recordings.Files(t, "qmsum/val.jsonl.gz")[0])) {
		var meeting struct {
			Turns   []struct{ Speaker, Content string } `json:"meeting_transcripts"`
			Queries []struct {
				Query string
				Spans [][2]string `json:"relevant_text_span"`
			} `json:"specific_query_list"`
		}
		if err := json.Unmarshal(line, &meeting); err != nil {
			t.Fatal(err)
		}
		var without, with Index
		for i, turn := range meeting.Turns {
			without.Add(furl.Pos{Msg: furl.Seq(i)}, turn.Content)
			with.Add(furl.Pos{Msg: furl.Seq(i)}, turn.Speaker+": "+turn.Content)
		}
		for _, q := range meeting.Queries {
			right := func(h Hit) bool {
				return slices.ContainsFunc(q.Spans, func(span [2]string) bool {
					from, err1 := strconv.Atoi(span[0])
					to, err2 := strconv.Atoi(span[1])
					return err1 == nil && err2 == nil && from <= int(h.Pos.Msg) && int(h.Pos.Msg) <= to
				})
			}
			bare.add(without.Search(q.Query, 20, nil), right)
			named.add(with.Search(q.Query, 20, nil), right)
		}
	}
	bare.check(t, "turns", 0.70, 0.81, 0.49)
	named.check(t, "turns with speakers", 0.71, 0.82, 0.53)
}

// claudeCode reads the messages of a recording of Claude Code, roughly.
func claudeCode(t *testing.T, text []byte) []*furl.Message {
	var msgs []*furl.Message
	for line := range bytes.Lines(text) {
		var rec struct {
			Type        string
			IsSidechain bool
			Message     struct {
				Role    furl.Role
				Content json.RawMessage
			}
		}
		if json.Unmarshal(line, &rec) != nil || rec.IsSidechain || rec.Type != "user" && rec.Type != "assistant" {
			continue
		}
		m := &furl.Message{Role: rec.Message.Role}
		var parts []struct {
			Type, Text, Name string
			Input, Content   json.RawMessage
		}
		var words string
		if json.Unmarshal(rec.Message.Content, &words) == nil {
			m.Blocks = []furl.Block{{Kind: furl.KindText, Text: words}}
		} else if err := json.Unmarshal(rec.Message.Content, &parts); err != nil {
			continue
		}
		for _, p := range parts {
			switch p.Type {
			case "text":
				m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindText, Text: p.Text})
			case "tool_use":
				m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindCall, Name: p.Name, Args: p.Input})
			case "tool_result":
				b := furl.Block{Kind: furl.KindResult}
				var inner []struct{ Text string }
				if json.Unmarshal(p.Content, &b.Text) != nil && json.Unmarshal(p.Content, &inner) == nil {
					for _, in := range inner {
						b.Text += in.Text + "\n"
					}
				}
				m.Blocks = append(m.Blocks, b)
			}
		}
		if len(m.Blocks) > 0 {
			msgs = append(msgs, m)
		}
	}
	return msgs
}

// Agents use names and repeat lines that they saw earlier. With all but the last
// messages hidden, a search must find each of them.
func TestRecallOfWhatWasSeen(t *testing.T) {
	const shown = 10 // messages
	var names, lines tally
	for _, file := range recordings.Files(t, "entire-cli/*.jsonl.gz") {
		var tracker fidelity.Tracker
		var x Index
		for i, m := range claudeCode(t, recordings.Read(t, file)) {
			hidden := func(p furl.Pos) bool { return int(p.Msg) <= i-shown }
			if m.Role == furl.RoleAssistant {
				r := tracker.Reply(m)
				for _, ref := range r.Refs {
					if lost(r.Holders(ref), i-shown) {
						names.add(x.Search(ref.Name, 0, hidden), func(h Hit) bool {
							return r.Holds(ref, int(h.Pos.Msg), h.Pos.Block)
						})
					}
				}
				for _, line := range r.Lines {
					if !lost(r.LineHolders(line), i-shown) {
						continue
					}
					at := make(map[furl.Pos]bool)
					for msg, block := range r.LineHolders(line) {
						at[furl.Pos{Msg: furl.Seq(msg), Block: block}] = true
					}
					hits := x.Search(line.Text, 20, hidden)
					lines.add(hits, func(h Hit) bool { return at[h.Pos] })
				}
			}
			for n := range m.Blocks {
				x.Add(furl.Pos{Msg: furl.Seq(i), Block: n}, slices.Collect(m.Blocks[n].Texts())...)
			}
			tracker.Add(m)
		}
	}
	names.check(t, "names", 0.999, 0.999, 0.999)
	lines.check(t, "quoted lines", 0.5, 0.5, 0.5)
}

// lost reports whether all holders are hidden.
func lost(holders func(func(int, int) bool), last int) bool {
	for msg := range holders {
		if msg > last {
			return false
		}
	}
	return true
}
