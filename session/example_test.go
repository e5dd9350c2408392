package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
	"github.com/furlhq/furl/wire/anthropic"
)

// say makes a message of a wire format; a program that has its messages as JSON
// decodes them with the codec instead.
func say(role furl.Role, blocks ...furl.Block) *furl.Message {
	m, err := anthropic.Codec.NewMessage(role, blocks)
	if err != nil {
		panic(err)
	}
	return m
}

// read is a step: a call and its result.
func read(n int) []*furl.Message {
	id := fmt.Sprintf("toolu_%d", n)
	return []*furl.Message{
		say(furl.RoleAssistant, furl.Block{Kind: furl.KindCall, ID: id, Name: "read", Args: json.RawMessage(fmt.Sprintf(`{"path":"part_%d.txt"}`, n))}),
		say(furl.RoleUser, furl.Block{Kind: furl.KindResult, ID: id, Text: fmt.Sprintf("chapter %d of the story. ", n) + strings.Repeat("And so on. ", 40)}),
	}
}

// story is a session of eight steps.
func story(all *session.Sessions) *session.Session {
	s := all.Create(storage.Meta{Title: "The story"})
	msgs := []*furl.Message{say(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read the story."})}
	for n := range 8 {
		msgs = append(msgs, read(n+1)...)
	}
	if _, err := s.Append(context.Background(), msgs...); err != nil {
		panic(err)
	}
	return s
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A program that keeps its conversation in a session appends what is said,
// has it fitted into the model's window, sends that, and hands the reply back.
func Example() {
	ctx := context.Background()
	store := inmem.New() // sqlite.Open and postgres.Open give stores that last
	all, err := session.New(store, &session.Options{Policy: "rolling-mask-5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := all.Create(storage.Meta{Title: "The story"})
	if _, err := s.Append(ctx, say(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read the story."})); err != nil {
		fmt.Println(err)
		return
	}
	for n := range 8 {
		if _, err := s.Append(ctx, read(n+1)...); err != nil {
			fmt.Println(err)
			return
		}
	}

	fit, err := s.Fit(ctx, "claude-sonnet-4-5")
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := wire.For(furl.FormatAnthropic).EncodeView(fit.View) // the request's messages
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d messages, of the first result there is: %s\n", len(list), fit.View.Messages[2].Blocks[0].Words())

	// What the provider answered, as its codec decodes it.
	reply := &protocol.Reply{
		ID: "msg_1", Usage: furl.Usage{Input: 900, Output: 12},
		Messages: []*furl.Message{say(furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: "I have read it."})},
	}
	if err := s.Observe(ctx, fit, reply); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the session has", s.Context("claude-sonnet-4-5").Messages, "messages")
	// Output:
	// 17 messages, of the first result there is: [observation masked — 464 chars]
	// the session has 18 messages
}

// A rewind goes to the end of a step and says where that is. What was hidden
// after it is visible again, and the branch that was left can be gone back to.
func ExampleSession_Rewind() {
	ctx := context.Background()
	s := story(must(session.New(inmem.New(), nil)))
	back, err := s.Rewind(ctx, 6) // within the third step
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("to %d, %d messages are left\n", back.To, back.Messages)
	for _, b := range s.Branches() {
		fmt.Printf("branch %d: %d messages, current %v\n", b.Head, b.Total, b.Current)
	}
	again, err := s.Rewind(ctx, back.Branch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("to %d, %d messages are left\n", again.To, again.Messages)
	// Output:
	// to 5, 5 messages are left
	// branch 5: 5 messages, current true
	// branch 17: 17 messages, current false
	// to 17, 17 messages are left
}

// What a policy has hidden is listed, and comes back as a whole or block by
// block.
func ExampleSession_Restore() {
	ctx := context.Background()
	s := story(must(session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})))
	if _, err := s.Fit(ctx, "claude-sonnet-4-5"); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range s.Reductions() {
		fmt.Printf("%s hides %d results, %s\n", r.Stage, r.Blocks, r.State)
	}

	// One result, through everything that hides it; it is kept from then on.
	spans, err := s.Spans("furl:3.0")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.Restore(ctx, session.RestoreOptions{Spans: spans}); err != nil {
		fmt.Println(err)
		return
	}
	// All that a reduction hides.
	if _, err := s.Restore(ctx, session.RestoreOptions{Reduction: s.Reductions()[0].Seq}); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range s.Reductions() {
		fmt.Printf("%s hides %d results, %s\n", r.Stage, r.Blocks, r.State)
	}
	// Output:
	// mask hides 3 results, active
	// mask hides 3 results, lifted
}

// A search looks in what the view does not show, and gives handles by which
// the exact original is had.
func ExampleSession_Search() {
	ctx := context.Background()
	s := story(must(session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})))
	if _, err := s.Fit(ctx, "claude-sonnet-4-5"); err != nil {
		fmt.Println(err)
		return
	}
	hits, err := s.Search(ctx, "chapter 2", session.SearchOptions{Limit: 1, Excerpt: 24})
	if err != nil {
		fmt.Println(err)
		return
	}
	original, err := s.Get(hits[0].Handle)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hits[0].Handle, hits[0].Tool, "hidden:", hits[0].Hidden)
	fmt.Println(len(original.Text), "characters")
	// Output:
	// furl:5.0 read hidden: true
	// 464 characters
}

// A fork is a session of its own that begins as another one did. Handles mean
// the same in both.
func ExampleSessions_Fork() {
	ctx := context.Background()
	all := must(session.New(inmem.New(), nil))
	s := story(all)
	fork, err := all.Fork(ctx, s, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := fork.Append(ctx, say(furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: "Another end."})); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Context("").Messages, "messages, and in the fork", fork.Context("").Messages)
	// Output: 17 messages, and in the fork 6
}

// Policies with options. A policy that is not mentioned keeps its defaults.
func ExampleOptions_policies() {
	store := inmem.New()
	policies := policy.NewSet(policy.Rolling{Target: 0.7, KeepMessages: 20})
	all, err := session.New(store, &session.Options{Policy: "rolling", Policies: policies})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(all.Tenant() == "")

	_, err = session.New(store, &session.Options{Policies: policy.NewSet(policy.Rolling{Target: 7})})
	fmt.Println(err)
	// Output:
	// true
	// policy rolling: invalid target_utilization 7: expected at most 1
}

// A preview says what a reduction would hide, free and cost before it is made.
func ExampleSession_Reduce_dryRun() {
	ctx := context.Background()
	s := story(must(session.New(inmem.New(), nil)))
	would, err := s.Reduce(ctx, session.ReduceOptions{Stage: &policy.Truncate{}, Model: "claude-sonnet-4-5", DryRun: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range would.Planned {
		fmt.Printf("%s would hide %d messages; smaller: %v\n", p.Stage, len(p.Messages), p.After < p.Before)
	}
	// Output: truncate would hide 8 messages; smaller: true
}

// A reader follows a session from a cursor on: the number of the last record
// that it has seen.
func ExampleSession_Watch() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := story(must(session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})))
	if _, err := s.Fit(ctx, "claude-sonnet-4-5"); err != nil {
		fmt.Println(err)
		return
	}
	for m, err := range s.Watch(ctx, 17) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range m.Events {
			fmt.Println(m.Record.Seq, e.Name())
		}
		break
	}
	// Output:
	// 18 observations_masked
	// 18 context_usage
}

// The requests of a session, with what each cost and what it would have cost without
// furl. A History that is kept can be extended as the session grows.
func ExampleSession_Requests() {
	ctx := context.Background()
	s := story(must(session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})))
	fit, err := s.Fit(ctx, "claude-sonnet-4-5")
	if err != nil {
		fmt.Println(err)
		return
	}
	reply := &protocol.Reply{Usage: furl.Usage{Input: 4000, Output: 200}, Messages: []*furl.Message{furl.TextMessage(furl.RoleAssistant, "Done.")}}
	if err := s.Observe(ctx, fit, reply); err != nil {
		fmt.Println(err)
		return
	}
	list, err := s.Requests()
	if err != nil {
		fmt.Println(err)
		return
	}
	last := list[len(list)-1]
	fmt.Printf("%d tokens for record %d, %d reductions, %s\n", last.Size, last.Sent, len(last.Reductions), last.Model)
	total := session.TotalsOf(list[len(list)-1:])
	fmt.Printf("$%.3f for input, $%.3f for output; less than without furl: %v\n", total.Fresh.Cost, total.Output.Cost, total.Cost < total.Without)
	// Output:
	// 4000 tokens for record 18, 1 reductions, claude-sonnet-4-5
	// $0.012 for input, $0.003 for output; less than without furl: true
}
