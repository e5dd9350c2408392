package exchange

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/recalltext"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// The names of the recall tools. furl adds them to requests and answers their
// calls; see RecallMode and Exchange.Answer.
const (
	ToolSearch = recalltext.ToolSearch
	ToolGet    = recalltext.ToolGet
)

// offerRecall adds recall tools to a request: those that the session has had
// from its first request on, or all of them if this is the first request.
func (t *tx) offerRecall(x *Exchange, begins bool) {
	x.addRecallTools(t.recallTools(), begins)
	if !begins || len(x.offered) == 0 {
		return
	}
	m := t.Meta().Clone()
	if m.Settings == nil {
		m.Settings = make(map[string]string)
	}
	m.Settings[open.SettingRecall] = strings.Join(x.offered, ",")
	t.SetMeta(m)
}

// addRecallTools adds recall tools to the request: those listed, or all if
// begins is set. A tool is not added if the client has one of the same name.
func (x *Exchange) addRecallTools(listed string, begins bool) {
	x.req, x.offered = x.original, nil
	mode := x.incoming.recall
	if mode == NoRecall || begins && (mode != OfferRecall || x.Dry) || !begins && listed == "" || !canAddTools(x.original) {
		return
	}
	offered := recalltext.Offer(listed, begins, func(name string) bool {
		return slices.ContainsFunc(x.original.Preamble, func(b furl.Block) bool { return b.Kind == furl.KindOpaque && b.ID == name })
	})
	for _, t := range offered {
		x.offered = append(x.offered, t.Name)
	}
	x.req = withRecallPreamble(x.original, x.offered)
}

// recallTools returns the names of the session's recall tools, separated by commas.
func (t *tx) recallTools() string { return t.Meta().Settings[open.SettingRecall] }

// canAddTools reports whether furl can add tools to a request and continue
// after its reply. The request must have tools, because furl cannot know
// otherwise whether the model supports them.
func canAddTools(req *protocol.Request) bool {
	api := wire.For(req.Format)
	if api == nil || !api.TakesTools(req) {
		return false
	}
	_, ok := lastTool(req)
	return ok
}

// lastTool returns the offset in the body where the last tool ends. If the tools
// follow the messages, the offset is relative to the end of the body, so 0 or
// negative. It is then also valid for a body with changed messages.
func lastTool(req *protocol.Request) (at int, ok bool) {
	n, api := len(req.Messages), wire.For(req.Format)
	if n == 0 || len(req.Offsets) != n || api == nil {
		return 0, false
	}
	messages := rawjson.Span{Start: req.Offsets[0], End: req.Offsets[n-1] + len(req.Messages[n-1].Raw)}
	rawjson.FieldsAround(req.Body, messages, func(name string, value rawjson.Span) {
		if name != "tools" {
			return
		}
		at, ok = api.LastTool(value.Of(req.Body))
		at += value.Start
		if value.Start > messages.Start {
			at -= len(req.Body)
		}
	})
	return at, ok
}

// toolDefinitions returns the definitions of the recall tools with these names.
func toolDefinitions(f furl.Format, names []string) [][]byte {
	api := wire.For(f)
	var list [][]byte
	for _, t := range recalltext.Offer("", true, func(name string) bool { return !slices.Contains(names, name) }) {
		if api != nil {
			list = append(list, api.Tool(t.Name, t.About, t.Schema))
		}
	}
	return list
}

// withRecallPreamble returns a copy of a request with the recall tools in its
// preamble.
func withRecallPreamble(req *protocol.Request, names []string) *protocol.Request {
	if len(names) == 0 {
		return req
	}
	out := *req
	out.Preamble = slices.Clone(req.Preamble)
	h := sha256.New()
	h.Write(req.PreambleDigest[:])
	for _, def := range toolDefinitions(req.Format, names) {
		out.Preamble = append(out.Preamble, furl.Block{Kind: furl.KindOpaque, Name: "function", Text: string(def)})
		h.Write(def)
	}
	h.Sum(out.PreambleDigest[:0])
	return &out
}

// withTools adds the recall tools to a body made from the request. They follow the
// client's tools, so that the client's cached prefix stays the same.
func withTools(req *protocol.Request, body []byte, names []string) []byte {
	if len(names) == 0 {
		return body
	}
	at, ok := lastTool(req)
	if !ok {
		return body
	}
	if at <= 0 {
		at += len(body)
	}
	var with bytes.Buffer
	for _, def := range toolDefinitions(req.Format, names) {
		with.WriteByte(',')
		with.Write(def)
	}
	return rawjson.Splice(body, []rawjson.Edit{{Span: rawjson.Span{Start: at, End: at}, New: with.Bytes()}})
}
