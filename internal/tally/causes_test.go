package tally_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/tally"
	"github.com/furlhq/furl/price"
)

// hundred counts 100 tokens for each text that is not empty, so that a block has 104 with what wraps it. A call has
// 100 more for its name.
type hundred struct{}

func (hundred) Count(text string) int {
	if text == "" {
		return 0
	}
	return 100
}

func (hundred) CountMedia(furl.Media) int { return 0 }

// The cost of a prompt is divided by position, that of the output by block, a prompt that is sent again is a retry, and
// nothing is lost.
func TestCauses(t *testing.T) {
	log := furl.NewLog()
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	s := billed.Session{ID: "s"}
	add := func(body furl.Body) furl.Seq {
		r, err := log.Append(log.Head(), at, furl.Import, body)
		if err != nil {
			t.Fatal(err)
		}
		return r.Seq
	}
	request := func(read, written, fresh, output int) {
		seq := add(&furl.Exchange{Model: "m"})
		s.Entries = append(s.Entries, billed.Entry{Seq: seq, Kind: billed.Reply, Model: "m", Time: at, Priced: true,
			Usage: furl.Usage{Input: fresh, CacheRead: read, CacheWrite: written, Output: output},
			Split: price.Cost{Fresh: float64(fresh), CacheRead: float64(read) / 10, CacheWrite: float64(written) * 2, Output: float64(output) * 5}})
		e := &s.Entries[len(s.Entries)-1]
		e.Cost = e.Split.Sum()
	}
	say := func(role furl.Role, blocks ...furl.Block) { add(&furl.Message{Role: role, Blocks: blocks}) }
	say(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "do it"})
	request(0, 1104, 0, 308) // 1,000 instructions
	say(furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: "yes"}, furl.Block{Kind: furl.KindCall, ID: "c", Name: "Read", Args: []byte(`{"a":1}`)})
	say(furl.RoleTool, furl.Block{Kind: furl.KindResult, ID: "c", Text: "much"})
	// The instructions and the user's text are read from the cache, the reply is written, the result is fresh.
	request(1104, 308, 104, 104)
	say(furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: "done"})
	s.Entries = append(s.Entries, billed.Entry{Kind: billed.KeepAlive, Time: at, Usage: furl.Usage{CacheRead: 10}, Cost: 7, Priced: true})

	c := tally.NewCauseCollector(tally.Query{}, hundred{})
	if err := c.Add(&s, log.Records(0), func(string) furl.Model { return furl.Model{} }); err != nil {
		t.Fatal(err)
	}
	rep := c.Report()
	var got []string
	sum := 0.0
	for _, g := range rep.Groups {
		got = append(got, fmt.Sprintf("%s %s: $%.1f, %d calls, %d results, %d in, %d out", g.Cause, g.Tool, g.Cost, g.Calls, g.ResultTokens, g.PromptTokens, g.OutputTokens))
		sum += g.Cost
	}
	slices.Sort(got)
	want := []string{
		"instructions : $2100.0, 0 calls, 0 results, 2000 in, 0 out", // 1,000 written at 2, then read at 0.1
		"keep-alive : $7.0, 0 calls, 0 results, 10 in, 0 out",
		"replies : $1248.0, 0 calls, 0 results, 104 in, 208 out",    // 104 written; 2 × 104 out at 5
		"tool Read: $1532.0, 1 calls, 104 results, 308 in, 204 out", // the call 204 × 2, the result 104 × 1, and 204 out at 5
		"user : $218.4, 0 calls, 0 results, 208 in, 0 out",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if math.Abs(sum-rep.Total.Cost) > 1e-9 || rep.Total.Requests != 3 {
		t.Errorf("causes are $%v, the total is %+v", sum, rep.Total)
	}
}
