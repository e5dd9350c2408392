package lost

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/transcript"
)

func add(t testing.TB, log *furl.Log, by furl.Actor, body furl.Body) furl.Seq {
	t.Helper()
	rec, err := log.Append(log.Head(), time.Time{}, by, body)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Seq
}

func message(role furl.Role, blocks ...furl.Block) *furl.Message {
	return &furl.Message{Role: role, Blocks: blocks}
}

func call(id, tool, args string) furl.Block {
	return furl.Block{Kind: furl.KindCall, ID: id, Name: tool, Args: []byte(args)}
}

func result(id, words string) furl.Block {
	return furl.Block{Kind: furl.KindResult, ID: id, Text: words}
}

// summary is a compaction of the messages from one record to another.
func summary(from, to furl.Seq, blocks int, words string) *furl.Reduction {
	span := furl.Span{First: furl.Pos{Msg: from}, Last: furl.Pos{Msg: to, Block: blocks - 1}}
	mark := furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, words)}}
	return &furl.Reduction{Stage: "compact", Items: []furl.Item{{Spans: []furl.Span{span}, Show: mark}}, Summary: &furl.Summary{Text: words}}
}

// conversation is a session with two compactions. What they lose was counted by hand.
func conversation(t testing.TB) *furl.Log {
	log := furl.NewLog()
	add(t, log, furl.Client, furl.TextMessage(furl.RoleUser, "<system-reminder>\nAlways use spaces in hiddenReminder.\n</system-reminder>\nRename loadConfig in src/config.go. Never touch the vendor folder."))
	add(t, log, furl.Client, message(furl.RoleAssistant,
		furl.Block{Kind: furl.KindThinking, Text: "secretThought"},
		call("c1", "Read", `{"file_path":"/srv/shop/src/config.go"}`),
		call("c2", "AskUserQuestion", `{"questions":[{"question":"Which format?"},{"question":"Keep the tests?"}]}`)))
	add(t, log, furl.Client, message(furl.RoleTool,
		result("c1", "12: parseConfig(path)\nsrc/env.go:7: readEnv, which is well-known and self-contained"),
		result("c2", `User has answered your questions: "Which format?"="TOML, "strict" and sorted", "Keep the tests?"="Yes". You can now continue.`)))
	add(t, log, furl.Client, furl.TextMessage(furl.RoleAssistant, "I rename loadConfig now; see maxRetries."))
	add(t, log, furl.Import, summary(1, 4, 1, "The user wants loadConfig renamed in src/config.go. Yes, and hiddenReminder."))
	add(t, log, furl.Client, furl.TextMessage(furl.RoleUser, "Go on with readEnv."))
	add(t, log, furl.Client, message(furl.RoleAssistant, call("c3", "Edit", `{"file_path":"/srv/shop/src/config.go","new":"parseConfig"}`)))
	add(t, log, furl.Client, message(furl.RoleTool, result("c3", "ok")))
	add(t, log, furl.Client, furl.TextMessage(furl.RoleAssistant, "parseConfig calls parseConfig. Never touch the vendor folder."))
	add(t, log, furl.Furl, summary(1, 9, 1, "All is done."))
	add(t, log, furl.Client, furl.TextMessage(furl.RoleUser, "Thanks."))
	return log
}

func lines(c *Compaction) (list []string) {
	for _, l := range []List{c.Answers, c.Sentences, c.Identifiers} {
		list = append(list, fmt.Sprintf("%d, %d used", l.Total, l.Used))
		for _, it := range l.Items {
			list = append(list, fmt.Sprintf("%s %s%s: %d replies, %d blocks", it.Handle, it.Question, it.Text, it.Replies, it.Blocks))
		}
	}
	return list
}

func TestOf(t *testing.T) {
	log := conversation(t)
	list, err := Of(log.Path(log.Head()))
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	first, second := list[0], list[1]
	if first.Reduction != 5 || first.Messages != 4 || first.Replies != 2 || first.By != "import" || first.Unreadable {
		t.Errorf("the first is %+v", first)
	}
	want := []string{
		// The summary has the second answer, but not its question, and "Yes" alone says nothing.
		"2, 0 used", `furl:3.1 Which format?TOML, "strict" and sorted: 0 replies, 1 blocks`, "furl:3.1 Keep the tests?Yes: 0 replies, 1 blocks",
		"2, 1 used", "furl:1.0 Never touch the vendor folder.: 1 replies, 1 blocks", "furl:1.0 Rename loadConfig in src/config.go.: 0 replies, 1 blocks",
		// readEnv is in the next message of the user, and of /srv/shop/src/config.go the
		// summary has the end.
		"3, 1 used", "furl:3.0 parseConfig: 2 replies, 1 blocks", "furl:4.0 maxRetries: 0 replies, 1 blocks", "furl:3.0 src/env.go: 0 replies, 1 blocks",
	}
	if got := lines(first); !slices.Equal(got, want) {
		t.Errorf("the first lost\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// What the first compaction has hidden is not counted again.
	want = []string{
		"0, 0 used",
		"1, 0 used", "furl:6.0 Go on with readEnv.: 0 replies, 1 blocks",
		"3, 0 used", "furl:6.0 readEnv: 0 replies, 1 blocks", "furl:7.0 parseConfig: 0 replies, 2 blocks", "furl:7.0 /srv/shop/src/config.go: 0 replies, 1 blocks",
	}
	if got := lines(second); !slices.Equal(got, want) {
		t.Errorf("the second lost\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	add(t, log, furl.Person, &furl.Restoration{Of: 10})
	if list, err = Of(log.Path(log.Head())); err != nil || len(list) != 2 || list[0].Undone || !list[1].Undone {
		t.Errorf("after the second is undone: %+v, %v", list, err)
	}
}

// A summary that only the provider can read, or that is not recorded, is said to be
// unreadable.
func TestUnreadable(t *testing.T) {
	for _, blocks := range [][]furl.Block{
		{{Kind: furl.KindOpaque, Name: "compaction", ID: "cmp_1", Signature: 400}},
		{{Kind: furl.KindText, Text: "[The summary is not part of the recording.]"}},
	} {
		log := furl.NewLog()
		add(t, log, furl.Client, furl.TextMessage(furl.RoleUser, "Look at parseConfig."))
		red := summary(1, 1, 1, "")
		red.Items[0].Show = furl.Mark{Messages: []*furl.Message{message(furl.RoleUser, blocks...)}}
		add(t, log, furl.Import, red)
		list, err := Of(log.Path(log.Head()))
		if err != nil || len(list) != 1 || !list[0].Unreadable || list[0].Identifiers.Total != 1 {
			t.Errorf("%+v: got %+v, %v", blocks, list, err)
		}
	}
}

// A policy's markers are no summaries, but what a client shows in place of messages is one.
func TestIsCompaction(t *testing.T) {
	red := summary(1, 1, 1, "x")
	red.Summary, red.Stage = nil, "evict"
	if IsCompaction(red, furl.Furl) {
		t.Error("the marker of evict is taken for a summary")
	}
	red.Stage = furl.StageClient
	if !IsCompaction(red, furl.Client) || unreadable(red) {
		t.Error("a client's summary is not recognised, or called unreadable")
	}
	red.Items[0].Show = furl.Mark{}
	if IsCompaction(red, furl.Client) {
		t.Error("messages that a client left out are taken for a summary")
	}
}

func TestSpoken(t *testing.T) {
	for text, want := range map[string]string{
		"a <b> c":                                           "a <b> c",
		"<task_hint>x</task_hint>say it":                    "\nsay it",
		"<user_query>say it</user_query>":                   "<user_query>say it</user_query>",
		"before <system-reminder>not closed":                "before not closed",
		"# AGENTS.md instructions for /srv\nUse tabs.":      "",
		"[Request interrupted by user]":                     "",
		"Base directory for this skill: /srv/x\n\nDo this.": "",
	} {
		if got := spoken(text); got != want {
			t.Errorf("spoken(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	text := "- Keep the old API. Do we need v1.2 of it?\n\"Say nothing of it!\"\nok then\n请不要修改接口文件。好\n| --- | --- |\n"
	got := slices.Collect(sentences(text))
	want := []string{"Keep the old API.", "Do we need v1.2 of it?", "Say nothing of it!", "请不要修改接口文件。"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nothing that is listed is in the summary or in what stays visible, and each handle is that
// of a block with the text, for all recordings with compactions.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "transcript", "testdata", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	if dir := os.Getenv("FURL_RECORDINGS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl.gz"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	compactions, items := 0, 0
	for _, file := range files {
		rec, err := new(transcript.Reader).ReadFile(file)
		if err != nil {
			continue // test data with faults
		}
		for _, s := range rec.Sessions {
			path := s.Log.Path(s.Log.Head())
			list, err := Of(path)
			if err != nil {
				t.Fatal(file, err)
			}
			for _, c := range list {
				compactions++
				visible := visibleAfter(t, path, c.Reduction)
				for _, l := range []List{c.Answers, c.Sentences, c.Identifiers} {
					if l.Used > l.Total || len(l.Items) > Shown || len(l.Items) > l.Total {
						t.Errorf("%s, compaction %d: %d of %d used, %d listed", file, c.Number, l.Used, l.Total, len(l.Items))
					}
					for i, it := range l.Items {
						items++
						if i > 0 && it.Replies > l.Items[i-1].Replies || it.Replies > c.Replies {
							t.Errorf("%s: %q is out of order, with %d replies", file, it.Text, it.Replies)
						}
						if strings.Contains(visible, it.Text) && it.Question == "" {
							t.Errorf("%s, compaction %d: %q is visible", file, c.Number, it.Text)
						}
						m, _ := s.Log.At(it.Pos.Msg).Body.(*furl.Message)
						if m == nil || it.Pos.Block >= len(m.Blocks) {
							t.Fatalf("%s: no block %s", file, it.Handle)
						}
						b := &m.Blocks[it.Pos.Block]
						if text := lexer.Fold(b.Text + " " + string(b.Args)); !strings.Contains(text, it.Text) {
							t.Errorf("%s: %s has no %q", file, it.Handle, it.Text)
						}
					}
				}
			}
		}
	}
	if compactions < 5 || items == 0 {
		t.Errorf("only %d compactions with %d items", compactions, items)
	}
}

// visibleAfter returns the texts of the view of the next request after a reduction.
func visibleAfter(t *testing.T, path []furl.Record, seq furl.Seq) string {
	t.Helper()
	st, found := new(furl.State), false
	for _, r := range path {
		m, _ := r.Body.(*furl.Message)
		if red, _ := r.Body.(*furl.Reduction); found && (m != nil && m.Role == furl.RoleAssistant || red != nil && IsCompaction(red, r.By)) {
			break
		}
		if err := st.Apply(r); err != nil {
			t.Fatal(err)
		}
		found = found || r.Seq == seq
	}
	var out strings.Builder
	v := st.View(furl.Model{})
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			for text := range v.Messages[i].Blocks[j].Texts() {
				out.WriteString(lexer.Fold(text) + "\n")
			}
		}
	}
	return out.String()
}

// A session of 10,000 messages takes less than a second on any machine that is not busy.
func BenchmarkOf(b *testing.B) {
	log := furl.NewLog()
	for i := 0; log.Len() < 10_000; i++ {
		id := fmt.Sprint("c", i)
		add(b, log, furl.Client, message(furl.RoleAssistant, call(id, "Read", fmt.Sprintf(`{"file_path":"/srv/shop/src/part_%d.go"}`, i))))
		seq := add(b, log, furl.Client, message(furl.RoleTool, result(id, strings.Repeat(fmt.Sprintf("func handle_%d(w io.Writer) error { return s.db_%d.Write(w) }\n", i, i%100), 60))))
		if i%500 == 499 {
			add(b, log, furl.Import, summary(1, seq, 1, "All is done."))
		}
	}
	path := log.Path(log.Head())
	for b.Loop() {
		if _, err := Of(path); err != nil {
			b.Fatal(err)
		}
	}
}
