package furlhttp

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// panicking is an API whose streams cannot be decoded without a panic.
type panicking struct{ wire.API }

func (panicking) NewAssembler() protocol.Assembler { return panickingAssembler{} }

type panickingAssembler struct{}

func (panickingAssembler) Feed(string, []byte) error       { panic("planted") }
func (panickingAssembler) Reply() (*protocol.Reply, error) { return &protocol.Reply{}, nil }

// Where decoding a reply panics, the caller gets all of it, and the hooks are told.
// Without a hook for it, the panic is the caller's, and nothing is locked.
func TestPanicWhileDecoding(t *testing.T) {
	body := strings.Repeat("data: {}\n\n", 3)
	for _, background := range []func(func()){nil, func(f func()) { f() }} {
		for _, hooked := range []bool{true, false} {
			sessions, err := session.New(inmem.New(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var replies []Reply
			var panics []any
			o := &Options{Background: background, Hooks: Hooks{Replied: func(_ *session.Exchange, r Reply) { replies = append(replies, r) }}}
			if hooked {
				o.Hooks.Panicked = func(p any) { panics = append(panics, p) }
			}
			tr := New(sessions, o)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}`))
			if err != nil {
				t.Fatal(err)
			}
			q := modelRequestOf(r)
			data, _, err := readBody(r, 1000)
			if err != nil {
				t.Fatal(err)
			}
			x, err := tr.beginExchange(q, data)
			if err != nil {
				t.Fatal(err)
			}
			q.api = panicking{q.api}
			b := tr.recordBody(q, x, &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body))})
			got, panicked := readGuarded(b)
			if hooked {
				if string(got) != body || panicked != nil || len(panics) != 1 || panics[0] != "planted" || len(replies) != 1 || replies[0].DecodeErr == nil || replies[0].Reply == nil {
					t.Errorf("%q, panic %v, told of %v and %+v", got, panicked, panics, replies)
				}
			} else if panicked != "planted" {
				t.Errorf("%q, panic %v", got, panicked)
			}
			func() {
				defer func() { _ = recover() }()
				_ = b.Close() // would hang
			}()
		}
	}
}

func readGuarded(r io.Reader) (got []byte, panicked any) {
	defer func() { panicked = recover() }()
	got, _ = io.ReadAll(r)
	return got, nil
}
