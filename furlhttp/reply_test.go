package furlhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// stream is a streamed reply of Messages in pieces.
var stream = []string{
	`event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}` + "\n\n",
	`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
	`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}` + "\n\n",
	`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo."}}` + "\n\n",
	`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n",
	`event: message_delta` + "\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}` + "\n\n",
	`event: message_stop` + "\n" + `data: {"type":"message_stop"}` + "\n\n",
}

// whole is the same reply in one piece.
const whole = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5}}`

// provided is a provider in a function: it answers with a body.
type provided struct {
	typ  string // content type; "": a stream
	more http.Header
	body func(r *http.Request) io.Reader

	closed chan struct{} // closed when the body is closed
}

func newProvided(body io.Reader) *provided {
	return &provided{body: func(*http.Request) io.Reader { return body }, closed: make(chan struct{})}
}

func (p *provided) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	h := http.Header{"Content-Type": {"text/event-stream"}}
	if p.typ != "" {
		h.Set("Content-Type", p.typ)
	}
	maps.Copy(h, p.more)
	return &http.Response{StatusCode: 200, Header: h, ContentLength: -1, Request: r, Body: struct {
		io.Reader
		io.Closer
	}{p.body(r), closerFunc(func() error {
		select {
		case <-p.closed:
		default:
			close(p.closed)
		}
		return nil
	})}}, nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// replies are what Options.Ended is called with.
type replies struct {
	mu   sync.Mutex
	all  []session.Reply
	x    *session.Exchange
	said chan struct{} // closed by the first
}

func newReplies() *replies { return &replies{said: make(chan struct{})} }

func (r *replies) hook(x *session.Exchange, list []session.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all = append(r.all, list...); len(r.all) == 1 {
		r.x = x
		close(r.said)
	}
}

func (r *replies) n() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// one waits for the first reply and returns what it says, and what is recorded
// of it. There must be one.
func (r *replies) one(t *testing.T) (reply session.Reply, recorded string) {
	t.Helper()
	<-r.said
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) != 1 {
		t.Errorf("%d replies: %+v", len(r.all), r.all)
	}
	if r.all[0].RecordErr != nil {
		t.Error(r.all[0].RecordErr)
	}
	if problems, err := r.x.Session.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
	st := sessiontest.Log(t, r.x.Session).State()
	for i := range st.Len() {
		_, m := st.Message(i)
		for _, b := range m.Blocks {
			recorded += string(m.Role) + ": " + b.Text + " "
		}
	}
	return r.all[0], strings.TrimSpace(recorded)
}

// ask sends a request in Messages.
func ask(t *testing.T, ctx context.Context, tr http.RoundTripper) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider/v1/messages", strings.NewReader(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return tr.RoundTrip(r)
}

// transport is a Transport with a store of its own.
func transport(t *testing.T, base http.RoundTripper, o furlhttp.Options) (*furlhttp.Transport, *replies) {
	t.Helper()
	said := newReplies()
	o.Base, o.Ended = base, said.hook
	return furlhttp.New(sessions(t, session.Options{}), &o), said
}

const hello = "user: Hi. assistant: Hello."

// endless is a body that ends only when the test says so.
func endless(t *testing.T, body io.Reader) io.Reader {
	in, out := io.Pipe()
	t.Cleanup(func() { _ = out.Close() })
	return io.MultiReader(body, in)
}

// A reply is recorded before the caller gets its end:
// that of the body, and of a stream its last event, after which the body may
// take its time.
func TestRecordedBeforeTheEnd(t *testing.T) {
	for _, f := range families {
		for _, streamed := range []bool{false, true} {
			for _, pieces := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
				var body []byte
				var typ string
				p := &program{t: t, f: f, stream: streamed}
				p.say("Hi.")
				s, url := provider(t, sim.Options{Player: sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) { return sim.Text("Hello."), nil })})
				p.client, p.url = http.DefaultClient, url
				resp, err := p.post()
				if err == nil {
					typ = resp.Header.Get("Content-Type")
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
				}
				if err != nil || len(s.Requests()) != 1 {
					t.Fatal(err)
				}
				base := newProvided(pieces(bytes.NewReader(body)))
				base.typ = typ
				if streamed {
					base.body = func(*http.Request) io.Reader { return endless(t, pieces(bytes.NewReader(body))) }
				}
				tr, said := transport(t, base, furlhttp.Options{})
				p.client = &http.Client{Transport: tr}
				if resp, err = p.post(); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(body))
				if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%q, %v", got, err)
				}
				if !streamed {
					if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Errorf("%d bytes, %v", n, err)
					}
				}
				if said.n() != 1 {
					t.Fatalf("%s stream %v: the caller has all of the reply, which is not recorded", f.format, streamed)
				}
				if reply, recorded := said.one(t); recorded != hello || !reply.Complete || reply.CutErr != nil || reply.DecodeErr != nil {
					t.Errorf("%s stream %v: %q %+v", f.format, streamed, recorded, reply)
				}
				_ = resp.Body.Close()
				if said.n() != 1 {
					t.Errorf("closing gave %d replies", said.n())
				}
			}
		}
	}
}

// A caller that has decoded a reply in one piece may close it before it has seen
// the end.
func TestClosedAfterAllOfIt(t *testing.T) {
	base := newProvided(endless(t, strings.NewReader(whole)))
	base.typ = "application/json"
	tr, said := transport(t, base, furlhttp.Options{})
	resp, err := ask(t, t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if reply, recorded := said.one(t); recorded != hello || !reply.Complete {
		t.Errorf("%q %+v", recorded, reply)
	}
}

// Of a reply that is cut off, the caller gets what arrived and the error, and what
// arrived is recorded.
func TestCutOff(t *testing.T) {
	gone := errors.New("gone")
	for _, tc := range []struct{ name, typ, body, recorded string }{
		{"a stream", "text/event-stream", strings.Join(stream[:3], ""), "user: Hi. assistant: Hel"},
		{"a stream within an event", "text/event-stream", strings.Join(stream[:3], "") + stream[3][:60], "user: Hi. assistant: Hel"},
		{"a stream without a word", "text/event-stream", stream[0], "user: Hi."},
		{"in one piece", "application/json", whole[:100], "user: Hi."},
		{"nothing", "application/json", "", "user: Hi."},
	} {
		base := newProvided(io.MultiReader(strings.NewReader(tc.body), iotest.ErrReader(gone)))
		base.typ = tc.typ
		tr, said := transport(t, base, furlhttp.Options{})
		resp, err := ask(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if string(got) != tc.body || !errors.Is(err, gone) {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
		_ = resp.Body.Close()
		if reply, recorded := said.one(t); recorded != tc.recorded || reply.Complete || !errors.Is(reply.CutErr, gone) || reply.DecodeErr != nil {
			t.Errorf("%s: %q %+v", tc.name, recorded, reply)
		}
	}
}

// leaving has a caller leave within a reply, of which the rest is sent then.
func leaving(t *testing.T, finish time.Duration, leave func(cancel context.CancelFunc, body io.Closer)) (session.Reply, string) {
	t.Helper()
	in, out := io.Pipe()
	base := newProvided(in)
	base.body = func(r *http.Request) io.Reader {
		context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) })
		return in
	}
	tr, said := transport(t, base, furlhttp.Options{Finish: finish})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := strings.Join(stream[:3], "")
	go func() { _, _ = io.WriteString(out, first) }()
	resp, err := ask(t, ctx, tr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, len(first))); err != nil {
		t.Fatal(err)
	}
	leave(cancel, resp.Body)
	if finish == 0 {
		_ = out.CloseWithError(io.ErrClosedPipe)
	}
	for _, piece := range stream[3:] {
		_, _ = io.WriteString(out, piece)
	}
	_ = out.Close()
	reply, recorded := said.one(t)
	<-base.closed
	return reply, recorded
}

// A caller that closes the body, or cancels its request, has the provider's work
// cancelled and recorded as far as it came, or, with Options.Finish, read to its
// end and recorded whole.
func TestTheCallerLeaves(t *testing.T) {
	for name, leave := range map[string]func(context.CancelFunc, io.Closer){
		"closes":          func(_ context.CancelFunc, body io.Closer) { _ = errors.Join(body.Close(), body.Close()) },
		"cancels":         func(cancel context.CancelFunc, body io.Closer) { cancel(); _ = body.Close() },
		"closes, cancels": func(cancel context.CancelFunc, body io.Closer) { _ = body.Close(); cancel() },
	} {
		if reply, recorded := leaving(t, 0, leave); recorded != "user: Hi. assistant: Hel" || reply.Complete || reply.CutErr == nil || reply.DecodeErr != nil {
			t.Errorf("%s: %q %+v", name, recorded, reply)
		}
		if reply, recorded := leaving(t, time.Hour, leave); recorded != hello || !reply.Complete || reply.CutErr != nil {
			t.Errorf("%s, finished: %q %+v", name, recorded, reply)
		}
	}
}

// Options.Finish bounds how long a reply is read on after its caller has left,
// whether that closes the body, cancels the request and reads on, or both.
func TestFinishIsBounded(t *testing.T) {
	for _, closes := range []bool{false, true} {
		for _, cancels := range []bool{false, true} {
			if !closes && !cancels {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				base := newProvided(nil)
				base.body = func(r *http.Request) io.Reader {
					first := true
					return readerFunc(func(p []byte) (int, error) {
						if first {
							first = false
							return copy(p, strings.Join(stream[:3], "")), nil
						}
						select {
						case <-time.After(time.Second):
							return copy(p, ": ping\n\n"), nil
						case <-r.Context().Done():
							return 0, r.Context().Err()
						}
					})
				}
				tr, said := transport(t, base, furlhttp.Options{Finish: time.Minute})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := ask(t, ctx, tr)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := resp.Body.Read(make([]byte, 4096)); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if cancels {
					cancel()
				}
				if closes {
					_ = resp.Body.Close()
				} else if _, err := io.Copy(io.Discard, resp.Body); err == nil {
					t.Error("the reply ended")
				}
				reply, recorded := said.one(t)
				if took := time.Since(began); took != time.Minute {
					t.Errorf("closes %v, cancels %v: it was read on for %v", closes, cancels, took)
				}
				if recorded != "user: Hi. assistant: Hel" || !errors.Is(reply.CutErr, context.Canceled) {
					t.Errorf("closes %v, cancels %v: %q %+v", closes, cancels, recorded, reply)
				}
				_ = resp.Body.Close()
				<-base.closed
			})
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Before there is a reply, Options.Finish is of no concern.
func TestTheCallerLeavesBeforeTheReply(t *testing.T) {
	for _, finish := range []time.Duration{0, time.Hour} {
		asked := make(chan struct{})
		tr, said := transport(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			close(asked)
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), furlhttp.Options{Finish: finish})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if _, err := ask(t, ctx, tr); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if said.n() != 0 {
			t.Error("there was a reply")
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A body may be closed while it is read, wherever that is: nothing is recorded
// twice, and with Options.Finish nothing is missing.
func TestClosedWhileRead(t *testing.T) {
	for _, finish := range []time.Duration{0, time.Hour} {
		for at := range len(stream) + 1 {
			in, out := io.Pipe()
			base := newProvided(in)
			tr, said := transport(t, base, furlhttp.Options{Finish: finish})
			sent := make(chan struct{})
			go func() {
				for i, piece := range stream {
					if i == at {
						close(sent)
					}
					_, _ = io.WriteString(out, piece)
				}
				if at == len(stream) {
					close(sent)
				}
				_ = out.Close()
			}()
			resp, err := ask(t, t.Context(), tr)
			if err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			both.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
			both.Go(func() {
				<-sent
				_ = resp.Body.Close()
				if finish == 0 {
					_ = in.Close() // as the body of a real reply is
				}
			})
			both.Wait()
			reply, recorded := said.one(t)
			if finish > 0 && (recorded != hello || !reply.Complete) || !strings.HasPrefix(hello, recorded) {
				t.Errorf("finish %v, closed at %d: %q %+v", finish, at, recorded, reply)
			}
			if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("a closed body gave %d bytes, %v", n, err)
			}
			<-base.closed
		}
	}
}

// packed is a text compressed with a flush after each piece.
func packed(pieces ...string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for _, p := range pieces {
		_, _ = io.WriteString(z, p)
		_ = z.Flush()
	}
	_ = z.Close()
	return out.Bytes()
}

// The provider is asked for a reply that is not encoded. If it sends gzip all the
// same, the caller gets it decoded, each piece as it arrives.
func TestGzip(t *testing.T) {
	for _, encoding := range []string{"gzip", "GZIP", " x-gzip "} {
		body := packed(stream...)
		base := newProvided(nil)
		base.more = http.Header{"Content-Encoding": {encoding}, "Content-Length": {strconv.Itoa(len(body))}}
		base.body = func(r *http.Request) io.Reader {
			if got := r.Header["Accept-Encoding"]; len(got) != 1 || got[0] != "identity" {
				t.Errorf("the provider was asked for %q", got)
			}
			return bytes.NewReader(body)
		}
		tr, said := transport(t, base, furlhttp.Options{})
		resp, err := ask(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != strings.Join(stream, "") || resp.Header["Content-Encoding"] != nil || resp.Header["Content-Length"] != nil || resp.ContentLength != -1 {
			t.Errorf("%q, %v, header %v", got, err, resp.Header)
		}
		_ = resp.Body.Close()
		if reply, recorded := said.one(t); recorded != hello || reply.DecodeErr != nil {
			t.Errorf("%q %+v", recorded, reply)
		}
	}
	// What is flushed arrives at once.
	head := packed(stream[:3]...)
	base := newProvided(endless(t, bytes.NewReader(head[:len(head)-9]))) // without the end that Close wrote
	base.more = http.Header{"Content-Encoding": {"gzip"}}
	tr, _ := transport(t, base, furlhttp.Options{})
	resp, err := ask(t, t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(stream[:3], "")
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

// An encoding that furl cannot read is passed on, and the record says so. What is
// not what it claims to be is an error.
func TestEncodings(t *testing.T) {
	for _, tc := range []struct{ name, encoding, body, unread, err string }{
		{"another encoding", "br", "anything", "unsupported Content-Encoding of the reply: br", ""},
		{"two", "gzip, br", "anything", "unsupported Content-Encoding of the reply: gzip, br", ""},
		{"none", "identity", strings.Join(stream, ""), "", ""},
		{"no gzip", "gzip", "this is no gzip", "", "gzip: invalid header"},
		{"a broken header", "gzip", "\x1f\x8b\x08\x00", "", "unexpected EOF"},
		{"a broken body", "gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "", "unexpected EOF"},
		{"nothing", "gzip", "", "", ""},
	} {
		base := newProvided(strings.NewReader(tc.body))
		base.more = http.Header{"Content-Encoding": {tc.encoding}}
		tr, said := transport(t, base, furlhttp.Options{})
		resp, err := ask(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err || tc.err == "" && string(got) != tc.body {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
		if tc.unread != "" && resp.Header.Get("Content-Encoding") != tc.encoding {
			t.Errorf("%s: header %v", tc.name, resp.Header)
		}
		_ = resp.Body.Close()
		reply, recorded := said.one(t)
		if fmt.Sprint(reply.DecodeErr) != tc.unread && (reply.DecodeErr != nil || tc.unread != "") || !strings.HasPrefix(recorded, "user: Hi.") || (reply.CutErr == nil) != (tc.err == "") {
			t.Errorf("%s: %q %+v", tc.name, recorded, reply)
		}
	}
}

// A reply that expands out of proportion is cut off.
func TestBombs(t *testing.T) {
	var bomb bytes.Buffer
	z, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 18 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	base := newProvided(&bomb)
	base.more = http.Header{"Content-Encoding": {"gzip"}}
	base.typ = "application/json"
	tr, said := transport(t, base, furlhttp.Options{})
	resp, err := ask(t, t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if !errors.Is(err, furlhttp.ErrBomb) || n > 17<<20 {
		t.Errorf("%v after %d bytes", err, n)
	}
	_ = resp.Body.Close()
	if reply, recorded := said.one(t); recorded != "user: Hi." || !errors.Is(reply.CutErr, furlhttp.ErrBomb) {
		t.Errorf("%q %+v", recorded, reply)
	}
}

// full is a store that takes so many batches.
type full struct {
	storage.Store
	left int
}

func (f *full) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if f.left--; f.left < 0 {
		return errors.New("the disk is full")
	}
	return f.Store.Append(ctx, key, b)
}

// A reply that cannot be recorded reaches the caller all the same. A request that
// cannot be recorded does too, unless session.Options.Refuse is set.
func TestStoreFull(t *testing.T) {
	for _, tc := range []struct {
		left            int
		refuse          bool
		err, unrecorded bool
		note            bool
	}{
		{0, false, false, false, true}, {0, true, true, false, false}, {1, false, false, true, false}, {1, true, false, true, false},
	} {
		all, err := session.New(&full{inmem.New(), tc.left}, &session.Options{Refuse: tc.refuse})
		if err != nil {
			t.Fatal(err)
		}
		said := newReplies()
		base := newProvided(strings.NewReader(strings.Join(stream, "")))
		tr := furlhttp.New(all, &furlhttp.Options{Base: base, Ended: said.hook})
		resp, err := ask(t, t.Context(), tr)
		if tc.err {
			if !errors.Is(err, furlhttp.ErrUnrecorded) {
				t.Errorf("%+v: %v", tc, err)
			}
			<-base.closed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != strings.Join(stream, "") {
			t.Errorf("%+v: %q, %v", tc, got, err)
		}
		_ = resp.Body.Close()
		if (resp.Header.Get(furlhttp.HeaderNote) != "") != tc.note {
			t.Errorf("%+v: %v", tc, resp.Header)
		}
		if tc.unrecorded && (said.n() != 1 || said.all[0].RecordErr == nil) || !tc.unrecorded && said.n() != 0 {
			t.Errorf("%+v: %+v", tc, said.all)
		}
	}
}
