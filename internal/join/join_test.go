package join_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/join"
	"github.com/furlhq/furl/transcript"
)

// Of each recording, a session that has only the first records gets the others, and
// nothing when they are added again. The session stays valid, and so does its head
// where nothing newer is added.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("../../transcript/testdata/*.json*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		testFile(t, file)
	}
}

func TestRecordings(t *testing.T) {
	for _, file := range recordings.Files(t, "entire-cli/*.jsonl.gz", "agentv/*.jsonl.gz", "pi-mono/*.gz", "nimbus/*.gz") {
		testFile(t, file)
	}
}

func testFile(t *testing.T, file string) {
	t.Helper()
	rec, err := transcript.ReadFile(file)
	if err != nil {
		return // of no known format
	}
	testSessions(t, rec)
}

func testSessions(t *testing.T, rec *transcript.Recording) {
	t.Helper()
	for _, s := range rec.Sessions[:min(len(rec.Sessions), 3)] {
		for _, n := range []int{s.Log.Len() / 3, s.Log.Len() / 2, s.Log.Len()} {
			session := furl.NewLog()
			if err := session.Load(s.Log.Records(0)[:n]); err != nil {
				t.Fatalf("%s: %v", rec.File, err)
			}
			had, head := session.Len(), session.Head()
			before := join.Compare(session, s.Log)
			done := join.Add(session, s.Log)
			if before.Known != done.Known || before.Lacked != done.Lacked {
				t.Errorf("%s, %d of %d records: Compare says %+v, Add %+v", rec.File, n, s.Log.Len(), before, done)
			}
			if n == s.Log.Len() && (session.Len() != had || session.Head() != head) {
				t.Errorf("%s: %d records are added to a session that has all", rec.File, session.Len()-had)
			}
			if done.Known == 0 {
				continue
			}
			if after := join.Compare(session, s.Log); after.Lacked > done.Refused {
				t.Errorf("%s, %d of %d records: %d replies are still lacking, %d of %d messages were refused", rec.File, n, s.Log.Len(), after.Lacked, done.Refused, done.Added)
			}
			if done.Refused > done.Added/10 {
				t.Errorf("%s, %d of %d records: %d messages were refused, %d added", rec.File, n, s.Log.Len(), done.Refused, done.Added)
			}
			had = session.Len()
			if again := join.Add(session, s.Log); again.Added > 0 || session.Len() != had {
				t.Errorf("%s, %d of %d records: the second time adds %d messages", rec.File, n, s.Log.Len(), again.Added)
			}
			again := furl.NewLog()
			if err := again.Load(session.Records(0)); err != nil {
				t.Errorf("%s: %v", rec.File, err)
			}
		}
	}
}

// builder appends messages to a log.
type builder struct {
	log *furl.Log
	at  time.Time
}

func newBuilder() *builder {
	return &builder{furl.NewLog(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
}

func (b *builder) say(t *testing.T, role furl.Role, texts ...string) furl.Seq {
	t.Helper()
	m := &furl.Message{Role: role}
	for _, text := range texts {
		m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindText, Text: text})
	}
	m.Seal()
	b.at = b.at.Add(time.Minute)
	r, err := b.log.Append(b.log.Head(), b.at, furl.Client, m)
	if err != nil {
		t.Fatal(err)
	}
	return r.Seq
}

func (b *builder) rewind(t *testing.T, to furl.Seq) {
	t.Helper()
	if _, err := b.log.Rewind(to, b.at, furl.Client); err != nil {
		t.Fatal(err)
	}
}

// texts are the texts on the current path.
func texts(log *furl.Log) (out []string) {
	st := log.State()
	for i := range st.Len() {
		_, m := st.Message(i)
		out = append(out, m.Blocks[len(m.Blocks)-1].Text)
	}
	return out
}

// Earlier messages and branches are added beside the current one, which stays.
func TestEarlierAndBranches(t *testing.T) {
	gateway := newBuilder()
	gateway.say(t, furl.RoleUser, "Summary of what was before.")
	gateway.say(t, furl.RoleAssistant, "I go on.")
	gateway.say(t, furl.RoleUser, "<reminder>", "Next")
	gateway.say(t, furl.RoleAssistant, "Done.")
	gateway.at = gateway.at.Add(time.Hour)
	gateway.say(t, furl.RoleUser, "Last")

	file := newBuilder()
	file.say(t, furl.RoleUser, "First")
	file.say(t, furl.RoleAssistant, "Done.") // as a later reply
	file.say(t, furl.RoleUser, "Continue")
	cut := file.say(t, furl.RoleAssistant, "I go on.")
	file.say(t, furl.RoleUser, "Another way")
	file.say(t, furl.RoleAssistant, "I try it.")
	file.rewind(t, cut)
	file.say(t, furl.RoleUser, "Next")
	file.say(t, furl.RoleAssistant, "Done.")

	done := join.Add(gateway.log, file.log)
	if done.Known != 2 || done.Lacked != 2 || done.Added != 4 || done.Refused != 0 {
		t.Errorf("got %+v", done)
	}
	if got := texts(gateway.log); len(got) != 5 || got[4] != "Last" {
		t.Errorf("the current branch is %q", got)
	}
	for _, want := range []string{"First", "Another way", "I try it."} {
		found := false
		for _, r := range gateway.log.Records(0) {
			m, ok := r.Body.(*furl.Message)
			found = found || ok && m.Blocks[0].Text == want
		}
		if !found {
			t.Errorf("%q was not added", want)
		}
	}
	if again := join.Add(gateway.log, file.log); again.Added != 0 {
		t.Errorf("the second time gives %+v", again)
	}
}

// A conversation with other replies is left alone.
func TestNothingInCommon(t *testing.T) {
	gateway, file := newBuilder(), newBuilder()
	gateway.say(t, furl.RoleUser, "Hello")
	gateway.say(t, furl.RoleAssistant, "Hi.")
	file.say(t, furl.RoleUser, "Hello")
	file.say(t, furl.RoleAssistant, "Good day.")
	if done := join.Add(gateway.log, file.log); done.Known != 0 || gateway.log.Len() != 2 {
		t.Errorf("got %+v", done)
	}
}
