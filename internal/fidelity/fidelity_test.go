package fidelity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

func text(role furl.Role, words string) *furl.Message { return furl.TextMessage(role, words) }

func message(role furl.Role, blocks ...furl.Block) *furl.Message {
	return &furl.Message{Role: role, Blocks: blocks}
}

func call(id, tool, args string) furl.Block {
	return furl.Block{Kind: furl.KindCall, ID: id, Name: tool, Args: []byte(args)}
}

func result(id, words string) furl.Block {
	return furl.Block{Kind: furl.KindResult, ID: id, Text: words}
}

const readResult = `     1→package store
     2→
     3→func (s *Store) Append(ctx context.Context, recs []Record) error {
     4→	return s.db.Write(ctx, encodeAll(recs))
     5→}
`

// conversation is a session of seven messages before the reply that the tests
// below measure.
func conversation() []*furl.Message {
	return []*furl.Message{
		text(furl.RoleSystem, "You work in /srv/project-x."),
		text(furl.RoleUser, "Append in store/store.go loses records, see issue-4711."),
		message(furl.RoleAssistant,
			furl.Block{Kind: furl.KindThinking, Text: "maybe retry_write or store/store.go"},
			furl.Block{Kind: furl.KindText, Text: "I look at it with build_tag."},
			call("c1", "Read", `{"file_path":"store/store.go","limit":200000}`),
			call("c2", "Grep", `{"pattern":"encodeAll","n":true}`)),
		message(furl.RoleTool, result("c1", readResult)),
		message(furl.RoleTool, result("c2", "store/codec.go:17:func encodeAll(recs []Record) []byte { // see codec_v2\n")),
		text(furl.RoleUser, "Go on."),
		message(furl.RoleAssistant, call("c3", "Read", `{ "limit": 200000, "file_path": "store/store.go" }`)),
	}
}

func reply() []*furl.Message {
	return []*furl.Message{
		message(furl.RoleAssistant,
			furl.Block{Kind: furl.KindThinking, Text: "issue-4711"},
			furl.Block{Kind: furl.KindText, Text: "encodeAll in store/codec.go, not retry_write, for issue-4711; fresh_name_1"},
			call("c4", "Edit", `{"file_path":"/srv/project-x/store/store.go","old":"func (s *Store) Append(ctx context.Context, recs []Record) error {\n\treturn s.db.Write(ctx, encodeAll(recs))","new":"s.db.Write"}`),
			call("c5", "Read", `{"limit":200000,"file_path":"store/store.go"}`)),
		message(furl.RoleAssistant,
			call("c6", "Grep", `{"n":true,"pattern":"encodeAll"}`),
			call("c7", "Grep", `{"n":false,"pattern":"encodeAll"}`),
			call("c8", "apply_patch", `"-func encodeAll(recs []Record) []byte { // see codec_v2\n+func encodeAll(recs []Record) []byte { // no longer\n"`)),
		text(furl.RoleUser, "store/store.go build_tag"),
	}
}

func TestReply(t *testing.T) {
	var tracker Tracker
	for _, m := range conversation() {
		tracker.Add(m)
	}
	r := tracker.Reply(reply()...)
	if r.Messages() != 7 || len(tracker.ends) != 7 {
		t.Errorf("the reply follows %d messages of %d, want 7", r.Messages(), len(tracker.ends))
	}
	var got []string
	for _, ref := range r.Refs {
		var line strings.Builder
		line.WriteString(ref.Name)
		if ref.FirstHand {
			line.WriteString(" first")
		}
		for msg, block := range r.Holders(ref) {
			line.WriteString(fmt.Sprintf(" %d.%d", msg, block))
		}
		got = append(got, line.String())
	}
	want := []string{
		"encodeAll 2.3 3.0 4.0", // the assistant searched for it before
		// store/codec.go occurred only as store/codec.go:17:func
		"retry_write 2.0", // in thinking only
		"issue-4711 first 1.0",
		"context.Context first 3.0",
		"s.db.Write first 3.0",
		"store/store.go 1.0 2.0 2.2 6.0",
		"codec_v2 first 4.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("references\n got %q\nwant %q", got, want)
	}
	got = got[:0]
	for _, line := range r.Lines {
		got = append(got, line.Text)
	}
	want = []string{
		"func (s *Store) Append(ctx context.Context, recs []Record) error {",
		"return s.db.Write(ctx, encodeAll(recs))",
		"func encodeAll(recs []Record) []byte { // see codec_v2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("quoted lines\n got %q\nwant %q", got, want)
	}
	got = got[:0]
	for _, rep := range r.Repeats {
		got = append(got, fmt.Sprint(rep.Tool, rep.results))
	}
	// Blocks are numbered across messages: the results are the seventh and
	// the eighth.
	if want := []string{"Read[6]", "Grep[7]"}; !slices.Equal(got, want) {
		t.Errorf("repeats %q, want %q", got, want)
	}
	if !r.Holds(r.Refs[0], 3, 0) || r.Holds(r.Refs[0], 3, 1) || r.Holds(r.Refs[0], 1, 0) {
		t.Error("Holds disagrees with Holders")
	}
}

func logOf(t testing.TB, msgs []*furl.Message) *furl.Log {
	t.Helper()
	log := furl.NewLog()
	for _, m := range msgs {
		add(t, log, m)
	}
	return log
}

func add(t testing.TB, log *furl.Log, body furl.Body) furl.Seq {
	t.Helper()
	rec, err := log.Append(log.Head(), time.Time{}, furl.Client, body)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Seq
}

// hide shows another text for one block.
func hide(msg furl.Seq, block int, words string) furl.Item {
	p := furl.Pos{Msg: msg, Block: block}
	return furl.Item{Spans: []furl.Span{{First: p, Last: p}}, Show: furl.In{Text: words}}
}

func TestSeen(t *testing.T) {
	var tracker Tracker
	for _, m := range conversation() {
		tracker.Add(m)
	}
	r := tracker.Reply(reply()...)
	mark := furl.Mark{Messages: []*furl.Message{text(furl.RoleUser, "[hidden: issue-4711, retry_write]")}}
	tests := []struct {
		name  string
		items []furl.Item
		want  Count
	}{
		{"everything", nil, Count{4, 4, 3, 3, 3, 3, 0, 0, 0}},
		{"one result", []furl.Item{hide(4, 0, "[hidden]")}, Count{4, 2, 3, 3, 3, 1, 1, 0, 0}},
		{"a placeholder with names", []furl.Item{hide(4, 0, "[hidden; names: s.db.Write]")}, Count{4, 3, 3, 3, 3, 1, 1, 0, 0}},
		{"a placeholder with lines", []furl.Item{hide(4, 0, "…\n 4\treturn s.db.Write(ctx, encodeAll(recs))\n")}, Count{4, 3, 3, 3, 3, 2, 1, 0, 0}},
		{"both results", []furl.Item{hide(4, 0, "-"), hide(5, 0, "-")}, Count{4, 1, 3, 3, 3, 0, 2, 0, 0}},
		{"arguments too", []furl.Item{hide(4, 0, "-"), hide(5, 0, "-"), hide(3, 3, `{"pattern":"[hidden]"}`)}, Count{4, 1, 3, 2, 3, 0, 2, 0, 0}},
		{"arguments that name", []furl.Item{hide(4, 0, "-"), hide(5, 0, "-"), hide(3, 3, `{"pattern":"s\nencodeAll"}`)}, Count{4, 1, 3, 3, 3, 0, 2, 0, 0}},
		{"the front", []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: 2}, Last: furl.Pos{Msg: 5}}}, Show: mark}}, Count{4, 1, 3, 2, 3, 0, 2, 0, 0}},
	}
	var seen Seen // one for all, to check that it does not keep stale state
	for _, tt := range tests {
		log := logOf(t, conversation())
		if tt.items != nil {
			add(t, log, &furl.Reduction{Stage: "test", Items: tt.items})
		}
		seen.Look(r, log.State().View(furl.Model{}))
		if got := seen.Count(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if seen.Shown(2, 0) || !seen.Shown(0, 0) || !seen.Shown(6, 0) || seen.Shown(6, 1) || seen.Shown(7, 0) || seen.Shown(-1, 0) {
		t.Error("Shown is wrong about the view that hides messages 1 to 4")
	}
	// The part of the reply that was visible in that view.
	rest := seen.Reply()
	seen.Look(rest, logOf(t, conversation()).State().View(furl.Model{}))
	if got, want := seen.Count(), (Count{1, 1, 2, 2, 0, 0, 0, 0, 0}); got != want {
		t.Errorf("restricted: %+v, want %+v", got, want)
	}
}

// After a rewind the state is as if the later messages had never been added,
// and earlier replies are unchanged.
func TestTruncate(t *testing.T) {
	msgs := conversation()
	var tracker Tracker
	for _, m := range msgs {
		tracker.Add(m)
	}
	before := tracker.Reply(reply()...)
	was := fmt.Sprint(*before)
	tracker.Truncate(9)
	if len(tracker.ends) != len(msgs) {
		t.Fatalf("a truncation after the end left %d messages", len(tracker.ends))
	}
	tracker.Truncate(2)
	other := []*furl.Message{text(furl.RoleUser, "retry_write"), message(furl.RoleAssistant, call("c1", "Read", `{"limit":200000,"file_path":"store/store.go"}`)), message(furl.RoleTool, result("c1", "s.db.Write"))}
	var fresh Tracker
	for _, m := range append(msgs[:2:2], other...) {
		fresh.Add(m)
	}
	for _, m := range other {
		tracker.Add(m)
	}
	if got, want := fmt.Sprint(*tracker.Reply(reply()...)), fmt.Sprint(*fresh.Reply(reply()...)); got != want {
		t.Errorf("after the rewind\n got %s\nwant %s", got, want)
	}
	if now := fmt.Sprint(*before); now != was {
		t.Errorf("the earlier reply changed\nfrom %s\n  to %s", was, now)
	}
	tracker.Truncate(-1)
	if r := tracker.Reply(reply()...); len(tracker.ends) != 0 || len(r.Refs)+len(r.Lines)+len(r.Repeats) != 0 {
		t.Errorf("a path without messages has %+v", *r)
	}
}
