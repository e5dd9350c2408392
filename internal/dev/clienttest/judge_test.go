package clienttest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/gemini"
	"github.com/furlhq/furl/wire/openai"
)

var codecs = map[furl.Format]protocol.Codec{
	furl.FormatAnthropic: anthropic.Codec, furl.FormatChat: openai.Chat, furl.FormatResponses: openai.Responses,
	furl.FormatGemini: gemini.Codec,
}

// judge holds a fixture to what furl promises after a client has worked with it
// for so many steps.
func (st *fixture) judge(t *testing.T, steps int) {
	t.Helper()
	for _, r := range st.sim.Requests() {
		if r.Verdict != sim.VerdictOK && !cutByRouter(&r) {
			t.Errorf("request %d, %s %s, %s: %s", r.N, r.Method, r.Path, r.Verdict, r.Error)
		}
	}
	list := st.sessions(t)
	if len(list) != 1 {
		t.Errorf("%d sessions, want 1:\n%s", len(list), st.requests())
		for _, s := range list {
			tell(t, s)
		}
		return
	}
	s := list[0]
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
	if n := len(s.Reductions()); n < 3 {
		t.Errorf("%d reductions, want 3 or more", n)
	}
	if n := len(s.Branches()); n != 1 {
		t.Errorf("%d branches, want 1: %+v", n, s.Branches())
	}
	st.whole(t, s, steps)
	st.recalled(t, s)
}

// cutByRouter reports whether a request is Gemini CLI's question which model is to answer, with so
// much of the end of the history that it begins with a call, which Google refuses. The client
// goes on without an answer (github.com/google-gemini/gemini-cli/issues/11814 has the same).
func cutByRouter(r *sim.Entry) bool {
	return r.API == furl.FormatGemini && bytes.Contains(r.Body, []byte(`"responseJsonSchema"`)) && strings.HasPrefix(r.Error, "Please ensure that function call turn")
}

// whole holds the session to the work: each piece is in one result of it,
// in order.
func (st *fixture) whole(t *testing.T, s *session.Session, steps int) {
	t.Helper()
	n := 1
	state := sessiontest.Log(t, s).State()
	for i := range state.Len() {
		_, m := state.Message(i)
		for j := range m.Blocks {
			if b := &m.Blocks[j]; b.Kind == furl.KindResult && strings.Contains(b.Text, marker(n)+" ") {
				n++
			}
		}
	}
	if n != steps+1 {
		t.Errorf("the session holds the results of %d steps, want %d", n-1, steps)
	}
}

// recalled gets all that is hidden by its handle, and holds it against what the
// client has sent or the model answered, and finds it by words of its own.
func (st *fixture) recalled(t *testing.T, s *session.Session) {
	t.Helper()
	shown := make(map[furl.Pos]bool)
	view := s.View("")
	for i := range view.Messages {
		for _, b := range view.Messages[i].Blocks {
			shown[b.Pos] = view.Messages[i].Seq != 0 && b.By == 0
		}
	}
	sent := st.sent(t)
	hidden, results := 0, 0
	for _, r := range s.Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			b, pos := &m.Blocks[i], furl.Pos{Msg: r.Seq, Block: i}
			if shown[pos] {
				continue
			}
			hidden++
			handle := recall.HandleOf(pos).String()
			var original struct {
				Text string `json:"text"`
			}
			st.get(t, "/sessions/"+string(s.ID())+"/blocks/"+handle, nil, &original)
			if want, ok := sent[keyOf(b)]; !ok || want != original.Text && !clippedFrom(want, original.Text) {
				t.Errorf("%s, a %s: got %.200q, the client had %.200q", handle, b.Kind, original.Text, want)
			}
			if b.Kind != furl.KindResult {
				continue
			}
			results++
			st.found(t, s, handle, b.Text)
		}
	}
	if results < 5 {
		t.Errorf("%d results are hidden (%d blocks in all), want 5 or more", results, hidden)
	}
	st.printed(t, s, shown)
}

// clippedFrom reports whether a text is what furl sends of a longer one, of which the provider
// never saw the middle.
func clippedFrom(text, original string) bool {
	before, rest, ok := strings.Cut(text, "[content clipped - ")
	_, after, closed := strings.Cut(rest, "left out here]")
	return ok && closed && strings.HasPrefix(original, before) && strings.HasSuffix(original, strings.TrimPrefix(after, "\n")) && len(original) > len(before)+len(after)
}

// found looks for a result by a name that only it has.
func (st *fixture) found(t *testing.T, s *session.Session, handle, text string) {
	t.Helper()
	for n := range pieces {
		if !strings.Contains(text, marker(n)+" ") {
			continue
		}
		var list struct {
			Hits []struct {
				Handle string `json:"handle"`
			} `json:"hits"`
		}
		st.get(t, "/sessions/"+string(s.ID())+"/search", url.Values{"q": {marker(n)}}, &list)
		for _, hit := range list.Hits {
			if hit.Handle == handle {
				return
			}
		}
		t.Errorf("%s is not among the hits for %s: %v", handle, marker(n), list.Hits)
		return
	}
}

// printed holds what furl get prints of one hidden result to the work.
func (st *fixture) printed(t *testing.T, s *session.Session, shown map[furl.Pos]bool) {
	t.Helper()
	for _, r := range s.Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			if pos := (furl.Pos{Msg: r.Seq, Block: i}); m.Blocks[i].Kind == furl.KindResult && !shown[pos] {
				out, err := st.furl(t.Context(), "get", string(s.ID()), recall.HandleOf(pos).String()).Output()
				if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(m.Blocks[i].Text) {
					t.Errorf("furl get: %v\n%.300s\nwant\n%.300s", err, out, m.Blocks[i].Text)
				}
				return
			}
		}
	}
}

// sent gives, for each block that reached the sim, its text as it was when the
// client first sent it, or the model said it.
func (st *fixture) sent(t testing.TB) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, r := range st.sim.Requests() {
		codec := codecs[r.API]
		if codec == nil || r.Method != "POST" {
			continue
		}
		req, err := codec.DecodeRequest(r.Body)
		if err != nil {
			t.Errorf("request %d: %v", r.N, err)
			continue
		}
		for _, m := range append(req.Messages, answer(t, codec, &r)...) {
			for j := range m.Blocks {
				b := &m.Blocks[j]
				if _, ok := out[keyOf(b)]; !ok {
					out[keyOf(b)] = textOf(b)
				}
			}
		}
	}
	return out
}

// answer gives the messages that the sim answered with.
func answer(t testing.TB, codec protocol.Codec, r *sim.Entry) []furl.Message {
	t.Helper()
	understand := codec.(protocol.ReplyCodec)
	if r.Verdict != sim.VerdictOK || strings.HasSuffix(r.Path, "/count_tokens") {
		return nil
	}
	if !r.Stream {
		reply, err := understand.DecodeReply(r.Status, r.Answer)
		if err != nil {
			t.Errorf("answer %d: %v", r.N, err)
			return nil
		}
		return values(reply.Messages)
	}
	asm, sc := understand.NewAssembler(), new(sse.Scanner)
	for ev, err := range sc.Feed(r.Answer) {
		if err == nil {
			err = asm.Feed(ev.Type, ev.Data)
		}
		if err != nil {
			t.Errorf("answer %d: %v", r.N, err)
			return nil
		}
	}
	reply, err := asm.Reply()
	if err != nil {
		t.Errorf("answer %d: %v", r.N, err)
		return nil
	}
	return values(reply.Messages)
}

func values(list []*furl.Message) []furl.Message {
	out := make([]furl.Message, len(list))
	for i, m := range list {
		out[i] = *m
	}
	return out
}

// keyOf names a block such that it is known again when its content is another.
func keyOf(b *furl.Block) string {
	if b.Kind == furl.KindCall || b.Kind == furl.KindResult {
		return b.Kind.String() + " " + b.ID
	}
	return b.Kind.String() + " " + b.Text
}

// textOf is what recall gives of a block.
func textOf(b *furl.Block) string {
	if b.Kind == furl.KindCall {
		return string(b.Args)
	}
	return b.Text
}

// dump writes what reached the sim into files, for a person to look at.
func (st *fixture) dump(t testing.TB) {
	dir := os.Getenv("FURL_CLIENTTEST_DUMP")
	if dir == "" {
		return
	}
	dir = filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, r := range st.sim.Requests() {
		var head bytes.Buffer
		head.WriteString(r.Method + " " + r.Path + "\n")
		_ = r.Header.Write(&head)
		name := filepath.Join(dir, fmt.Sprintf("%03d", r.N))
		if err := os.WriteFile(name+".head", head.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name+".json", r.Body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// sessions opens all that the gateway has recorded, the newest first.
func (st *fixture) sessions(t testing.TB) (list []*session.Session) {
	t.Helper()
	store, err := sqlite.Open(st.store, &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := all.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// tell prints the beginning of a session.
func tell(t testing.TB, s *session.Session) {
	records, meta := s.Records(0), s.Meta()
	t.Logf("%s: hint %q, client %q, %d records", s.ID(), meta.Hint, meta.Client, len(records))
	for _, r := range records[:min(8, len(records))] {
		line, err := record.JSON{}.Append(nil, r)
		t.Logf("%.400s %v", line, err)
	}
}
