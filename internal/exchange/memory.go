package exchange

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// The recall tools that a model can call. Whoever sends requests on adds them
// and answers their calls, see RecallMode and Exchange.Answer.
const (
	ToolSearch = "memory_search"
	ToolGet    = "memory_get"
)

// recallTool is one of the tools: short, since it is part of each prompt's bill,
// and the same bytes for ever.
type recallTool struct{ name, about, schema string }

var recallTools = []recallTool{
	{ToolSearch, "Search what this conversation no longer shows you: older messages and tool results that were shortened, summarized or left out to save context. Gives excerpts with handles.",
		`{"type":"object","properties":{"query":{"type":"string","description":"Words, names, paths or identifiers to look for."}},"required":["query"]}`},
	{ToolGet, "Get the exact original of something this conversation no longer shows you, by its handle, such as furl:12.0.",
		`{"type":"object","properties":{"handle":{"type":"string"},"from_line":{"type":"integer"},"to_line":{"type":"integer"}},"required":["handle"]}`},
}

// offer decides which recall tools a request gets: those that the session has
// had from its beginning, or, if it begins with this request, all that it may.
func (t *tx) offer(x *Exchange, begins bool) {
	x.offer(t.recallTools(), begins)
	if !begins || len(x.offered) == 0 {
		return
	}
	m := cloneMeta(t.Meta())
	if m.Settings == nil {
		m.Settings = make(map[string]string)
	}
	m.Settings[session.SettingRecall] = strings.Join(x.offered, ",")
	t.SetMeta(m)
}

// offer adds recall tools to what is asked: those listed, or all in a request
// that begins a session. A name that the client has a tool of is the client's.
func (x *Exchange) offer(listed string, begins bool) {
	x.req, x.offered = x.asked, nil
	mode := x.in.recall
	if mode == NoRecall || begins && (mode != OfferRecall || x.Dry) || !begins && listed == "" || !recallable(x.asked) {
		return
	}
	for i := range recallTools {
		name := recallTools[i].name
		taken := slices.ContainsFunc(x.asked.Preamble, func(b furl.Block) bool { return b.Kind == furl.KindOpaque && b.ID == name })
		if !taken && (begins || slices.Contains(strings.Split(listed, ","), name)) {
			x.offered = append(x.offered, name)
		}
	}
	x.req = offered(x.asked, x.offered)
}

// recallTools lists the recall tools that the session's requests have.
func (t *tx) recallTools() string { return t.Meta().Settings[session.SettingRecall] }

// recallable reports whether furl can add tools to a request and go on from its
// reply with another: it has tools of its own, since a model that takes none
// cannot be told from others.
func recallable(req *protocol.Request) bool {
	api := wire.For(req.Format)
	if api == nil || !api.TakesTools(req) {
		return false
	}
	_, ok := lastTool(req)
	return ok
}

// lastTool is where in the body the last tool of a request ends. Tools that
// follow the messages are counted from the body's end, so that the place
// holds for a body whose messages were changed: it is then negative, or 0.
func lastTool(req *protocol.Request) (at int, ok bool) {
	outside(req, func(name string, r *rawjson.Reader, shift int) {
		if name != "tools" {
			return
		}
		at, ok = 0, false
		if r.Kind() != '[' {
			return
		}
		for range r.Elements() {
			at, ok = r.Skip().End, true
		}
		if shift > 0 {
			at += shift - len(req.Body)
		}
	})
	return at, ok
}

// outside reads the fields of a request's body without going through its
// messages, which are nearly all of it.
func outside(req *protocol.Request, field func(name string, r *rawjson.Reader, shift int)) {
	if n := len(req.Messages); n > 0 && len(req.Offsets) == n {
		rawjson.FieldsAround(req.Body, req.Offsets[0], req.Offsets[n-1]+len(req.Messages[n-1].Raw), field)
	}
}

// definitions are those of the tools of these names.
func definitions(f furl.Format, names []string) [][]byte {
	api := wire.For(f)
	var list [][]byte
	for _, t := range recallTools {
		if api != nil && slices.Contains(names, t.name) {
			list = append(list, api.Tool(t.name, t.about, t.schema))
		}
	}
	return list
}

// offered gives a request whose preamble has the recall tools, as its body will
// have them.
func offered(req *protocol.Request, names []string) *protocol.Request {
	if len(names) == 0 {
		return req
	}
	out := *req
	out.Preamble = slices.Clone(req.Preamble)
	h := sha256.New()
	h.Write(req.PreambleDigest[:])
	for _, def := range definitions(req.Format, names) {
		out.Preamble = append(out.Preamble, furl.Block{Kind: furl.KindOpaque, Name: "function", Text: string(def)})
		h.Write(def)
	}
	h.Sum(out.PreambleDigest[:0])
	return &out
}

// withTools adds the recall tools to a body made of the request's: after the
// client's own tools, so that what the client caches stays what it was.
func withTools(req *protocol.Request, body []byte, names []string) []byte {
	at, ok := lastTool(req)
	if len(names) == 0 || !ok {
		return body
	}
	if at <= 0 {
		at += len(body)
	}
	var with bytes.Buffer
	for _, def := range definitions(req.Format, names) {
		with.WriteByte(',')
		with.Write(def)
	}
	return rawjson.Splice(body, []rawjson.Edit{{Span: rawjson.Span{Start: at, End: at}, New: with.Bytes()}})
}
