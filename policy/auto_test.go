package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/namecount"
)

// priced is a model with a cache as Anthropic's.
var priced = furl.Model{
	Prices:   furl.Prices{Input: 5, CacheRead: 0.5, CacheWrite: 6.25, Output: 25},
	Caching:  furl.Caching{Explicit: true, Lifetime: 5 * time.Minute},
	Thinking: furl.Thinking{Removable: true},
}

// paid is a budget at which tokens cost money and the window is far away.
func (s *session) paid() furl.Budget {
	b := s.budget(10_000_000)
	b.Model, b.Now, b.LastUse = priced, s.at, s.at.Add(-time.Minute)
	return b
}

// read adds a step that reads a file.
func (s *session) read(file, result string) {
	s.call("Read", `{"file_path":"`+file+`"}`, result, false)
}

func (s *session) call(tool, args, result string, failed bool) {
	id := fmt.Sprintf("c%d", s.log.Len())
	s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: id, Name: tool, Args: json.RawMessage(args)}}})
	s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Text: result, Error: failed}}})
}

// hiddenNow lists the messages in which something is not shown as recorded.
func (s *session) hiddenNow() map[int]bool {
	hidden := make(map[int]bool)
	for i := range s.log.State().Len() {
		hidden[i+1] = true
	}
	v := s.view()
	for i := range v.Messages {
		if v.Messages[i].AsRecorded() {
			hidden[v.Messages[i].Index+1] = false
		}
	}
	return hidden
}

var hidResults = regexp.MustCompile(`^hid \d+ results( and \d+ steps)? \([0-9,k]+ tokens\) from record `)

func TestAutoWaitsUntilItPays(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	p := must(t, "auto")
	var acted []int
	for i := range 120 {
		s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(400), false)
		b := s.paid()
		plan := s.plan(p, b)
		for _, red := range plan.Reductions {
			acted = append(acted, i)
			if red.Before-red.After < 1000 {
				t.Errorf("at %d it frees only %d tokens", i, red.Before-red.After)
			}
			if !hidResults.MatchString(red.Reason) {
				t.Errorf("the reason %q does not say what was hidden", red.Reason)
			}
			for _, want := range []string{" from record ", "rewriting ", " costs $", "saves $", " per request; about ", " more requests expected"} {
				if !strings.Contains(red.Reason, want) {
					t.Errorf("the reason %q lacks %q", red.Reason, want)
				}
			}
			if red.Cost.Rewrite <= 0 || red.Cost.PerRequest <= 0 || red.Cost.Remaining != float64(i+1) {
				t.Errorf("the cost is %+v", red.Cost)
			}
		}
	}
	if len(acted) < 3 || len(acted) > 40 {
		t.Errorf("it acted %d times in 120 requests: %v", len(acted), acted)
	}
}

// If a client has entries of one hour followed by entries of five minutes, only the later
// ones expire after five minutes. An edit of these costs nothing then.
func TestAutoMixedLifetimes(t *testing.T) {
	for _, c := range []struct {
		name   string
		idle   time.Duration
		longTo int // index of the last message with an entry of one hour
		acts   bool
	}{
		{"all entries warm", time.Minute, 0, false},
		{"those after the first message expired", 6 * time.Minute, 0, true},
		{"those after the last result expired", 6 * time.Minute, 8, false},
		{"all expired", 61 * time.Minute, 8, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			s.say(furl.RoleUser, "go")
			for i := range 4 {
				s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(300), false)
			}
			b := s.paid()
			b.LongTo, _ = s.log.State().Message(c.longTo)
			b.LastUse = b.Now.Add(-c.idle)
			plan := s.plan(must(t, "auto"), b)
			if got := len(plan.Reductions) > 0; got != c.acts {
				t.Errorf("acts: %v, want %v; %+v", got, c.acts, plan.Steps)
			}
		})
	}
}

func TestAutoColdCache(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*furl.Budget)
		acts bool
	}{
		{"warm", func(*furl.Budget) {}, false},
		{"older than its lifetime", func(b *furl.Budget) { b.LastUse = b.Now.Add(-6 * time.Minute) }, true},
		{"another model", func(b *furl.Budget) { b.Cold = true }, true},
		{"no cache", func(b *furl.Budget) { b.Model.Caching = furl.Caching{} }, true},
		{"no breakpoint for messages", func(b *furl.Budget) { b.Uncached = true }, true},
		{"no price", func(b *furl.Budget) { b.Model = furl.Model{} }, false},
		{"no price, near the window", func(b *furl.Budget) { b.Model = furl.Model{}; b.Window = b.Size + 10 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			s.say(furl.RoleUser, "go")
			for i := range 4 {
				s.read(fmt.Sprintf("src/f%d.go", i), text(300))
			}
			b := s.paid()
			c.set(&b)
			plan := s.plan(must(t, "auto"), b)
			if got := len(plan.Reductions) > 0; got != c.acts {
				t.Errorf("acts: %v, want %v; %+v", got, c.acts, plan.Steps)
			}
		})
	}
}

// TestAutoKeeps makes the cache warm and what waiting has cost large, so that
// everything goes that may.
func TestAutoKeeps(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	s.read("src/old.go", text(90_000))                                                                     // 3: superseded
	s.read("src/old.go", text(500))                                                                        // 5: the newest read, since the user's last words
	s.call("Bash", `{"command":"make"}`, "boom "+text(500), true)                                          // 7: failed
	s.read("src/edited.go", text(500))                                                                     // 9: the newest read of an edited file
	s.call("Write", `{"file_path":"src/new.go","content":"`+strings.Repeat("x y ", 400)+`"}`, "ok", false) // 10
	for i := range 2 {
		s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(9000), false)
	}
	s.call("Edit", `{"file_path":"src/edited.go","old_string":"a","new_string":"b"}`, "ok", false)
	s.call("list", `{"m":0}`, text(10), false)
	s.plan(must(t, "auto"), s.paid())
	hidden := s.hiddenNow()
	for message, want := range map[int]bool{3: true, 5: false, 7: false, 9: false, 10: false, 13: true, s.log.State().Len(): false} {
		if hidden[message] != want {
			t.Errorf("message %d hidden: %v, want %v", message, hidden[message], want)
		}
	}
	for _, name := range []string{"auto:results", "auto:frugal:results"} {
		p := must(t, name)
		c := newCopy(t, s)
		c.plan(p, c.paid())
		if got := c.hiddenNow(); p.Name() != name || got[10] || !got[13] {
			t.Errorf("%s calls itself %s and hides %v", name, p.Name(), got)
		}
	}
	for _, name := range []string{"auto:calls", "auto:results:results", "rolling:results"} {
		if _, err := NewSet().Policy(name, Settings{}); err == nil {
			t.Errorf("there is a policy %s", name)
		}
	}
}

// A reduction that a person asks for is not said to be required by the window, unless it is.
func TestAutoAsked(t *testing.T) {
	for window, required := range map[int]bool{100_000: false, 20_000: true} {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		for range 13 {
			s.call("list", `{}`, text(1400), false)
		}
		b := s.paid()
		b.Window, b.Force = window, true
		plan := s.plan(must(t, "auto"), b)
		if len(plan.Reductions) == 0 {
			t.Fatalf("window %d: nothing is hidden", window)
		}
		if why := plan.Reductions[0].Reason; strings.Contains(why, "required by the window") != required {
			t.Errorf("window %d, size %d: %s", window, b.Size, why)
		}
	}
}

// Near the window the newest reads go only when the rest is not enough: it
// frees less than a quarter of the window, or less than its rewrite costs.
func TestAutoForced(t *testing.T) {
	for _, tt := range []struct {
		others int // large results beside the read
		words  int // of the user
		goes   bool
	}{{4, 1, false}, {0, 1, true}, {1, 1, false}, {1, 6_000, true}} {
		s := newSession(t)
		s.say(furl.RoleUser, text(tt.words))
		s.read("src/a.go", text(2000)) // 3
		for i := range tt.others {
			s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(2000), false)
		}
		for i := range 4 {
			s.call("list", fmt.Sprintf(`{"m":%d}`, i), text(10), false)
		}
		s.call("Edit", `{"file_path":"src/a.go","old_string":"a","new_string":"b"}`, "ok", false)
		b := s.paid()
		b.Window = b.Size + b.Size/200
		s.plan(must(t, "auto"), b)
		if got := s.hiddenNow()[3]; got != tt.goes {
			t.Errorf("beside %d large results and %d tokens of the user's the newest read is hidden: %v, want %v", tt.others, tt.words, got, tt.goes)
		}
	}
}

// newCopy is the session without what furl did.
func newCopy(t testing.TB, s *session) *session {
	c := newSession(t)
	for i := range s.log.Len() {
		if m, ok := s.log.At(furl.Seq(i + 1)).Body.(*furl.Message); ok {
			c.add(&furl.Message{Role: m.Role, Blocks: m.Blocks})
		}
	}
	return c
}

func TestAutoInput(t *testing.T) {
	long := strings.Repeat("VerifyToken in src/auth.go ", 20)
	for args, want := range map[string]string{
		`{"file_path":"a.go","content":"` + long + `"}`:                    `{"file_path":"a.go","content":"`,
		`{"n":9007199254740993, "edits":[ {"new":"` + long + `","k":1} ]}`: `{"n":9007199254740993, "edits":[ {"new":"`,
		`"*** Begin Patch ` + long + `"`:                                   `"[shortened`,
		`{"` + strings.ReplaceAll(long, " ", "_") + `":1}`:                 "",
		`{"a":"short"}`: "",
		`{"a":"` + long: "",
	} {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		block := &furl.Block{Kind: furl.KindCall, Args: json.RawMessage(args), Tokens: len(args)}
		c := candidate{kind: aCall, block: &furl.ShownBlock{Pos: furl.Pos{Msg: 4}, Block: block, Tokens: block.Tokens}}
		a := auto{dial: balanced}
		got := ""
		if show, _, ok := a.texts(s.view(), s.paid(), nil).show(&c); ok {
			got = show.(furl.In).Text
		}
		switch {
		case want == "" && got != "":
			t.Errorf("%s becomes %s", args, got)
		case want != "" && (!json.Valid([]byte(got)) || !strings.HasPrefix(got, want) || !strings.Contains(got, "VerifyToken") || len(got) >= len(args)):
			t.Errorf("%s becomes %s", args, got)
		}
	}
}

func TestUseOf(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		want       fileUse
	}{
		{"Read", `{"file_path":"/a/b.go"}`, fileUse{reads: []string{"/a/b.go"}, readsAll: true}},
		{"read", `{"path":"b.go","offset":3}`, fileUse{reads: []string{"b.go"}}},
		{"str_replace_based_edit_tool", `{"command":"view","path":"b.go"}`, fileUse{reads: []string{"b.go"}, readsAll: true}},
		{"Edit", `{"file_path":"b.go","old_string":"x"}`, fileUse{writes: []string{"b.go"}}},
		{"Write", `{"file_path":"b.go","content":"x"}`, fileUse{writes: []string{"b.go"}, writesAll: true}},
		{"apply_patch", `{"input":"*** Update File: b.go\n"}`, fileUse{writes: []string{"b.go"}}},
		{"exec_command", `{"cmd":"cd x && sed -n '1,90p' src/b.go"}`, fileUse{reads: []string{"src/b.go"}}},
		{"shell", `{"command":["bash","-lc","cat a.go b.go; ls"]}`, fileUse{reads: []string{"a.go", "b.go"}, readsAll: true}},
		{"bash", `{"command":"nl -ba 'a.go' | sed -n '1,5p'"}`, fileUse{reads: []string{"a.go"}}},
		{"bash", `{"command":"cat *.go > out.txt"}`, fileUse{reads: []string{"out.txt"}, readsAll: true}},
		{"bash", `{"command":"go test ./..."}`, fileUse{readsAll: true}},
		{"Grep", `{"pattern":"x","path":"src/"}`, fileUse{}},
		{"Read", `{`, fileUse{readsAll: true}},
		{"exec_command", `{"cmd":"cat b.go /c.go","workdir":"/a"}`, fileUse{reads: []string{"b.go", "/c.go", "/a/b.go"}, readsAll: true}},
		{"exec", `"const r = await tools.exec_command({cmd:\"sed -n '1,90p' b.go\\ncat c.go\",workdir:\"/a\"}); text(r.output)"`,
			fileUse{reads: []string{"b.go", "c.go", "/a/b.go", "/a/c.go"}}},
		{"exec", `"const p = \"*** Begin Patch\\n*** Update File: /a/b.go\\n@@\\n-x\"; text(await tools.apply_patch(p)); await tools.exec_command({cmd:'cat c.go'})"`,
			fileUse{reads: []string{"c.go"}, writes: []string{"/a/b.go"}, readsAll: true}},
		{"exec", `"await tools.exec_command({cmd: f(x) + ' a.go'})"`, fileUse{readsAll: true}},
	} {
		got := useOf(&furl.Block{Kind: furl.KindCall, Name: c.tool, Args: json.RawMessage(c.args)})
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, want %+v", c.tool, c.args, got, c.want)
		}
	}
}

// Inputs of calls stay as the model wrote them, whatever else is hidden, unless an
// option says otherwise.
func TestAutoLeavesInputs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		o     Auto
		short bool
	}{
		{"auto", Auto{}, false}, {"auto:faithful", Auto{}, false}, {"auto:frugal", Auto{}, false}, {"auto:results", Auto{}, false},
		{"auto", Auto{ShortenInputs: true}, true}, {"auto:frugal", Auto{ShortenInputs: true}, true},
		{"auto:results", Auto{ShortenInputs: true}, false},
	} {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		p := must(t, tt.name, tt.o)
		for i := range 150 {
			s.call("Write", fmt.Sprintf(`{"file_path":"src/a_%d.go","content":"%s"}`, i, text(300)), text(300), false)
			s.plan(p, s.paid())
		}
		short, hidden := false, false
		v := s.view()
		for i := range v.Messages {
			for _, sb := range v.Messages[i].Blocks {
				short = short || sb.Block.Kind == furl.KindCall && sb.By != 0
				hidden = hidden || sb.Block.IsResult() && sb.By != 0
			}
		}
		if short != tt.short || !hidden {
			t.Errorf("%s with %+v: inputs are shortened: %v, want %v; results are hidden: %v", tt.name, tt.o, short, tt.short, hidden)
		}
	}
}

// A marker replaces old steps and tells of each in a line; answers, words of
// the user, and what is kept stay, and no mark is ever touched again.
func TestAutoFolds(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	p := must(t, "auto")
	marks := make(map[string]int)
	for i := range 120 {
		if i == 40 {
			s.say(furl.RoleAssistant, "the answer is VerifyToken")
			s.say(furl.RoleUser, "and the second task")
		}
		id := fmt.Sprint("c", i)
		s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{
			{Kind: furl.KindText, Text: fmt.Sprintf("Now I look at number %d.", i)},
			{Kind: furl.KindCall, ID: id, Name: "list", Args: json.RawMessage(fmt.Sprintf(`{"path":"src/dir_%d"}`, i))},
		}})
		s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Error: 3 <= i && i <= 6, Text: fmt.Sprintf("error: twice_%d ", i) + text(400) + fmt.Sprintf(" twice_%d", i)}}})
		s.plan(p, s.paid())
		seen, same := 0, make(map[string]bool)
		v := s.view()
		for j := range v.Units {
			if u := &v.Units[j]; u.Kind == furl.UnitMark {
				key := fmt.Sprint(u.Blocks[0].By, u.Blocks[0].Words())
				for same[key] {
					key += "'" // two of one reduction may have the same text
				}
				same[key] = true
				marks[key]++
				seen++
			}
		}
		if seen != len(marks) {
			t.Fatalf("at %d there are %d marks, of %d ever shown", i, seen, len(marks))
		}
	}
	if len(marks) == 0 {
		t.Fatal("no step was folded")
	}
	var all strings.Builder
	v := s.view()
	for j := range v.Messages {
		for k := range v.Messages[j].Blocks {
			all.WriteString(v.Messages[j].Blocks[k].Words() + "\n")
		}
	}
	for _, want := range []string{"Now I look at number 0.; list src/dir_0", "list src/dir_3 (failed)", "originals kept as furl:2.0 to ", "twice_0", "the answer is VerifyToken", "and the second task"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the view lacks %q", want)
		}
	}
	c := newCopy(t, s)
	c.plan(must(t, "auto:results"), c.paid())
	for _, u := range c.view().Units {
		if u.Kind == furl.UnitMark {
			t.Fatal("auto:results folds")
		}
	}
}

// TestAutoProperties holds over any session, planned before each request: what
// was hidden stays as it was hidden, or is replaced by a marker or carries its list,
// both of which stay; no plan enlarges the view, and the same
// state and budget give the same plan.
func TestAutoProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSession(t)
		name := rapid.SampledFrom([]string{"auto", "auto:results", "auto:frugal", "auto:faithful"}).Draw(rt, "preset")
		p := must(t, name)
		shown := make(map[furl.Pos]string) // what is shown for a block
		lists := make(map[furl.Pos]bool)   // it carries the list of hidden steps
		marks := make(map[furl.Seq]int)    // visible marks by their reduction
		s.say(furl.RoleUser, "go")
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				s.say(furl.RoleUser, "and now this")
			case 1:
				s.call("Write", `{"file_path":"a.go","content":"`+strings.Repeat("word ", rapid.IntRange(0, 500).Draw(rt, "input"))+`"}`, "ok", false)
			case 2:
				s.read(rapid.SampledFrom([]string{"a.go", "b.go"}).Draw(rt, "file"), text(rapid.IntRange(0, 600).Draw(rt, "words")))
			default:
				s.step("list", text(rapid.IntRange(0, 900).Draw(rt, "words")), text(rapid.IntRange(0, 90).Draw(rt, "words")))
			}
			b := s.paid()
			if rapid.IntRange(0, 9).Draw(rt, "pause") == 0 {
				b.LastUse = b.Now.Add(-time.Hour)
			}
			one, _ := p.Plan(context.Background(), s.log.State(), b)
			two := s.plan(p, b)
			if !reflect.DeepEqual(one.Reductions, two.Reductions) {
				rt.Fatalf("two plans: %+v, %+v", one.Reductions, two.Reductions)
			}
			if two.After > two.Before || len(two.Reductions) > 0 && two.After == two.Before {
				rt.Fatalf("from %d to %d tokens with %d reductions", two.Before, two.After, len(two.Reductions))
			}
			now := make(map[furl.Seq]int)
			for i := range two.View.Units {
				if u := &two.View.Units[i]; u.Kind == furl.UnitMark {
					now[u.By]++
				}
			}
			for by, n := range marks {
				if now[by] != n {
					rt.Fatalf("of %d marks of %d there are %d", n, by, now[by])
				}
			}
			marks = now
			for i := range two.View.Messages {
				for _, sb := range two.View.Messages[i].Blocks {
					list := sb.By != 0 && strings.HasPrefix(sb.Words(), "[hidden: this result and ")
					if was, ok := shown[sb.Pos]; ok && was != sb.Words() && (lists[sb.Pos] || !list) {
						rt.Fatalf("%v was %q, is %q", sb.Pos, was, sb.Words())
					}
					lists[sb.Pos] = list
					if sb.By != 0 {
						shown[sb.Pos] = sb.Words()
					}
				}
			}
		}
	})
}

// BenchmarkAuto is planning for one more request of a session of so many
// tokens, in steps of 400. Quiet: nothing pays, as on most requests. Acting: the
// cache is cold and everything old is hidden, of which names are chosen; after
// that a session is smaller, and quiet for long.
func BenchmarkAuto(b *testing.B) {
	for _, target := range []int{50_000, 200_000} {
		s := newSession(b)
		s.say(furl.RoleUser, "go")
		for i := range target / 400 {
			s.call("Read", fmt.Sprintf(`{"file_path":"src/dir/file_%d.go"}`, i), codeText(i, 380), false)
		}
		namecount.Blocks(s.log.State(), "x") // counted as it was recorded, a message at a time
		quiet, acting := s.paid(), s.paid()
		quiet.Model.Prices.CacheRead = 0.001
		acting.LastUse = acting.Now.Add(-time.Hour)
		for name, budget := range map[string]furl.Budget{"quiet": quiet, "acting": acting} {
			b.Run(fmt.Sprintf("%s/%d", name, target), func(b *testing.B) {
				p := must(b, "auto")
				b.ReportAllocs()
				for b.Loop() {
					plan, err := p.Plan(context.Background(), s.log.State(), budget)
					if err != nil {
						b.Fatal(err)
					}
					if acts := len(plan.Reductions) > 0; acts != (name == "acting") {
						b.Fatalf("%s acts: %v", name, acts)
					}
				}
			})
		}
	}
}

// codeText is about so many words as a program has them, names among them.
func codeText(seed, words int) string {
	var out strings.Builder
	for i := range words {
		if i%6 == 0 {
			fmt.Fprintf(&out, "handle_%d_%d ", seed, i%60)
		} else {
			out.WriteString("word ")
		}
	}
	return out.String()
}

// TestAutoFoldsAcrossMessages folds the steps between messages of the user: each group
// has a marker, all have one list, and a reply stays until three messages are newer.
func TestAutoFoldsAcrossMessages(t *testing.T) {
	s := newSession(t)
	for _, topic := range []string{"login", "logout", "store", "index", "cache"} {
		s.say(furl.RoleUser, "Mend the "+topic)
		for i := range 3 {
			s.call("list", fmt.Sprintf(`{"path":"src/%s/%d"}`, topic, i), text(900), false)
		}
		s.say(furl.RoleAssistant, "The "+topic+" works again. "+text(300))
	}
	s.say(furl.RoleUser, "Thanks")
	s.call("list", `{"path":"."}`, text(10), false)
	b := s.paid()
	b.Cold = true
	s.plan(must(t, "auto"), b)
	var shown strings.Builder
	v := s.view()
	for i := range v.Units {
		for j := range v.Units[i].Blocks {
			for text := range v.Units[i].Blocks[j].Texts() {
				shown.WriteString(text + "\n")
			}
		}
	}
	got := shown.String()
	if n := strings.Count(got, "listed in a tool result"); n != 5 {
		t.Errorf("%d markers, want 5 in\n%s", n, got)
	}
	if n := strings.Count(got, "of the assistant around it"); n != 1 {
		t.Errorf("%d lists, want 1 in\n%s", n, got)
	}
	for topic, stays := range map[string]bool{"login": false, "logout": false, "store": false, "index": true, "cache": true} {
		if whole := strings.Contains(got, "The "+topic+" works again. "+text(300)); whole != stays {
			t.Errorf("the reply about the %s is shown whole: %v, want %v", topic, whole, stays)
		}
		if !strings.Contains(got, "The "+topic+" works again.") || !strings.Contains(got, "Mend the "+topic) {
			t.Errorf("nothing is left of the words about the %s", topic)
		}
	}
	b.Cold = true
	if plan := s.plan(must(t, "auto"), b); len(plan.Reductions) != 0 {
		t.Errorf("the list or a marker was folded again: %+v", plan.Steps)
	}
}

// A list of folded steps is shortened once, to its most valuable names, when many
// requests are newer.
func TestAutoShortensOldLists(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "Mend the login")
	for i := range 20 {
		s.call("list", fmt.Sprintf(`{"path":"src/login/%d"}`, i), fmt.Sprintf("parseLogin%d checkLogin%d parseLogin%d ", i, i, i)+text(900), false)
	}
	lists := func() (shown []string) {
		b := s.paid()
		b.Cold = true
		s.plan(must(t, "auto"), b)
		v := s.view()
		for i := range v.Units {
			for j := range v.Units[i].Blocks {
				for text := range v.Units[i].Blocks[j].Texts() {
					if strings.Contains(text, "of the assistant around it") {
						shown = append(shown, text)
					}
				}
			}
		}
		return shown
	}
	whole := lists()
	if len(whole) != 1 || !strings.Contains(whole[0], "said and called there:\n") {
		t.Fatalf("the lists are %q", whole)
	}
	for i := range 80 {
		s.call("list", fmt.Sprintf(`{"path":"src/logout/%d"}`, i), text(900), false)
	}
	after := lists()
	if len(after) != 2 {
		t.Fatalf("the lists are %q", after)
	}
	short := after[0]
	head, _, _ := strings.Cut(whole[0], ";")
	if !strings.HasPrefix(short, head) || strings.Contains(short, "said and called") || !strings.Contains(short, "; names in them: ") || len(short) > len(whole[0])*3/4 {
		t.Errorf("the list\n%s\nwas shortened to\n%s", whole[0], short)
	}
	for range 2 {
		for i := range 80 {
			s.call("list", fmt.Sprintf(`{"path":"src/cache/%d"}`, i), text(900), false)
		}
		if again := lists(); again[0] != short {
			t.Errorf("the shortened list\n%s\nis now\n%s", short, again[0])
		}
	}
}
