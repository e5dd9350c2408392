package policy_test

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// cheapModel is a Summarizer. A real one sends what the view shows, and the
// request after it, to a model, and reads the answer with
// policy.SummaryText.
type cheapModel struct{}

func (cheapModel) Summarize(_ context.Context, r policy.SummaryRequest) (policy.Summary, error) {
	return policy.Summary{
		Text:  fmt.Sprintf("%d messages were exchanged about the harbour.", len(r.Hide)),
		Model: "cheap",
		Usage: furl.Usage{Input: 1200, Output: 12},
	}, nil
}

// A summary is prepared while the conversation goes on, and recorded when
// there is time for it.
func Example_summaryInTheBackground() {
	log := furl.NewLog()
	say := func(role furl.Role, text string) {
		m := furl.TextMessage(role, text)
		m.Measure(letters{})
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			fmt.Println(err)
		}
	}
	budget := func() furl.Budget {
		return furl.Budget{Counter: letters{}, Size: log.State().View(furl.Model{}).Tokens}
	}
	for range 5 {
		say(furl.RoleUser, "How deep is the harbour at low tide, and who keeps the chart that says so?")
		say(furl.RoleAssistant, "The old basin has four metres, the new one nine; the harbour master keeps the chart.")
	}

	compact := &policy.Compact{Summarizer: cheapModel{}, Continue: "Go on from here."}
	prepared, err := compact.Prepare(context.Background(), log.State(), budget())
	if err != nil {
		fmt.Println(err)
		return
	}
	say(furl.RoleUser, "And at high tide?") // in the meantime

	red, err := policy.Commit(log.State(), budget(), prepared)
	if err != nil {
		fmt.Println("not any more:", err)
		return
	}
	if _, err := log.Append(log.Head(), time.Time{}, furl.Furl, red); err != nil {
		fmt.Println(err)
	}
	for _, m := range log.State().View(furl.Model{}).Messages {
		for _, b := range m.Blocks {
			fmt.Printf("%s: %s\n", m.Msg.Role, b.Words())
		}
	}
	for _, c := range policy.Compactions(log.State()) {
		fmt.Printf("compaction %d: %d messages archived, %d tokens freed\n", c.Number, c.Archived, c.Freed())
	}
	// Output:
	// user: [context_compaction 1: 8 messages archived, 851 tokens before]
	//
	// 8 messages were exchanged about the harbour.
	// [end of context_compaction 1]
	// user: Go on from here.
	// user: How deep is the harbour at low tide, and who keeps the chart that says so?
	// assistant: The old basin has four metres, the new one nine; the harbour master keeps the chart.
	// user: And at high tide?
	// compaction 1: 8 messages archived, 502 tokens freed
}

// letters counts a token a letter.
type letters struct{}

func (letters) Count(text string) int { return len(text) }
