package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// golden is one request of testdata/clients: what a client sends, and the
// session that it belongs to.
type golden struct {
	name    string
	session string // "-": none
	method  string
	path    string
	header  http.Header
	body    []byte
	req     *protocol.Request // nil: not for a model
}

var goldenName = regexp.MustCompile(`^(.+): (\S+) (GET|HEAD|POST) (\S+)$`)

// readGolden reads a file of testdata/clients. Each file in it is a request,
// named "WORDS: SESSION METHOD PATH", with its headers, an empty line, and its
// body. Above stands what the client is, and lines "branches SESSION N".
func readGolden(t *testing.T, name string) (list []golden, branches map[string]int) {
	t.Helper()
	ar, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	branches = make(map[string]int)
	for line := range strings.Lines(string(ar.Comment)) {
		var id string
		var n int
		if k, _ := fmt.Sscanf(line, "branches %s %d", &id, &n); k == 2 {
			branches[id] = n
		}
	}
	for _, f := range ar.Files {
		m := goldenName.FindStringSubmatch(f.Name)
		if m == nil {
			t.Fatalf(`%s: %q is not "WORDS: SESSION METHOD PATH"`, name, f.Name)
		}
		r := bufio.NewReader(bytes.NewReader(f.Data))
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			t.Fatalf("%s: %s: %v", name, f.Name, err)
		}
		g := golden{name: m[1], session: m[2], method: m[3], path: m[4], header: http.Header(header)}
		if g.body, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		g.body = bytes.TrimSpace(g.body)
		path, _, _ := strings.Cut(g.path, "?")
		for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
			if a := (&agent{format: format}); a.path() == path {
				if g.req, err = a.codec().DecodeRequest(g.body); err != nil {
					t.Fatalf("%s: %s: %v", name, f.Name, err)
				}
			}
		}
		list = append(list, g)
	}
	return list, branches
}

// foretold answers each request with what follows it in a later one that
// begins with it: what its client was told then. Requests that are alike get
// the answers in order, and the last again when there is no other.
type foretold struct {
	list []golden
	told map[furl.Digest]int
}

func (f *foretold) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	at := chainOf(req.Messages)
	answers := f.answers(req, at)
	if n := len(req.Messages) - 1; len(answers) == 0 && n > 0 {
		at = chainOf(req.Messages[:n]) // the last one changes each time
		answers = f.answers(req, at)
	}
	if len(answers) == 0 {
		return sim.Text("Done."), nil
	}
	n := f.told[at]
	f.told[at]++
	return answers[min(n, len(answers)-1)], nil
}

// answers gives what is after a history in the requests of the format.
func (f *foretold) answers(req *protocol.Request, at furl.Digest) (answers []sim.Reply) {
	known := make(map[furl.Digest]bool)
	for _, g := range f.list {
		if g.req == nil || g.req.Format != req.Format {
			continue
		}
		for n := range g.req.Messages {
			if g.req.Messages[n].Role != furl.RoleAssistant || chainOf(g.req.Messages[:n]) != at {
				continue
			}
			var reply sim.Reply
			for ; n < len(g.req.Messages) && g.req.Messages[n].Role == furl.RoleAssistant; n++ {
				for _, b := range g.req.Messages[n].Blocks {
					if b.Kind == furl.KindText || b.Kind == furl.KindCall {
						reply.Blocks = append(reply.Blocks, b)
					}
				}
			}
			if end := chainOf(g.req.Messages[:n]); len(reply.Blocks) > 0 && !known[end] {
				known[end] = true
				answers = append(answers, reply)
			}
			break
		}
	}
	return answers
}

func chainOf(msgs []furl.Message) (chain furl.Digest) {
	for i := range msgs {
		chain = msgs[i].Extend(chain)
	}
	return chain
}

// Each request that a client was seen to send, or is known to, lands in the
// session where it belongs, or in none. docs/internals/matching.md has the same in words.
func TestGoldenRequests(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden requests", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			list, branches := readGolden(t, file)
			st := newFixture(t, &sim.Options{Player: &foretold{list, make(map[furl.Digest]int)}, AnyField: true, Models: sim.Only(furl.Model{ID: "m", Window: 200_000, SystemInside: true})}, nil, nil)
			ids := make(map[string]string)
			for _, g := range list {
				got := st.golden(t, &g)
				switch want, ok := ids[g.session]; {
				case g.session == "-" && got != "":
					t.Errorf("%s: it is in session %s, and belongs to none", g.name, got)
				case g.session == "-":
				case got == "":
					t.Errorf("%s: it is in no session", g.name)
				case ok && got != want:
					t.Errorf("%s: it is in session %s, want %s (%s)", g.name, got, want, g.session)
				case !ok:
					for name, other := range ids {
						if other == got {
							t.Errorf("%s: it is in session %s, which is %s", g.name, got, name)
						}
					}
					ids[g.session] = got
				}
			}
			if n := len(st.list(t)); n != len(ids) {
				t.Errorf("%d sessions, want %d", n, len(ids))
			}
			for name, id := range ids {
				st.branched(t, name, id, max(1, branches[name]))
			}
		})
	}
}

// golden sends a request and gives the session it is in.
func (st *fixture) golden(t *testing.T, g *golden) string {
	t.Helper()
	req, err := http.NewRequest(g.method, st.front.URL+g.path, bytes.NewReader(g.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = g.header.Clone()
	resp, err := st.front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if g.req != nil && resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", g.name, resp.StatusCode, answer)
	}
	return resp.Header.Get("X-Furl-Session")
}

// branched holds a session to how many conversations it should have, and to
// the laws.
func (st *fixture) branched(t *testing.T, name, id string, want int) {
	t.Helper()
	s, err := st.sessions.Open(t.Context(), furl.SessionID(id))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Branches(); len(got) != want {
		t.Errorf("session %s has %d branches, want %d: %+v", name, len(got), want, got)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("session %s: %v %v", name, problems, err)
	}
}
