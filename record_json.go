package furl

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// RecordJSON writes records as JSON and reads them back: one object each, on
// one line, its fields always in the same order, nothing left out that
// EncodeRecord keeps. It is what people, the page and other programs read;
// docs/record-json.md lists the fields.
//
// Records have no MarshalJSON, because package encoding/json would rewrite the
// bytes that a message had on the wire.
type RecordJSON struct {
	// Codec gives the codec of a wire format, nil for one that is unknown.
	// If set, a message whose blocks are just what its bytes decode to is
	// written without them, which halves it, and can be read by whoever has
	// the same codecs. If nil, blocks are always written.
	Codec func(Format) Codec
}

// The kinds of record in JSON.
const (
	jsonMessage     = "message"
	jsonReduction   = "reduction"
	jsonRestoration = "restoration"
	jsonTakeover    = "takeover"
	jsonExchange    = "exchange"
	jsonHead        = "head"
)

// Append appends the record's JSON to dst, without a newline.
func (j RecordJSON) Append(dst []byte, r Record) ([]byte, error) {
	w := &jsonWriter{out: append(dst, '{'), codec: j.Codec}
	w.key("seq").uint(uint64(r.Seq))
	w.key("parent").uint(uint64(r.Parent))
	if !r.At.IsZero() {
		w.key("at").time(r.At)
	}
	w.key("by").enum(uint8(r.By), actorNames[:])
	switch b := r.Body.(type) {
	case *Message:
		w.key("kind").string(jsonMessage)
		if !r.Chain.IsZero() {
			w.key("chain").digest(r.Chain)
		}
		w.message(b)
	case *Reduction:
		w.key("kind").string(jsonReduction)
		w.reduction(b)
	case *Restoration:
		w.key("kind").string(jsonRestoration)
		w.restoration(b)
	case *Takeover:
		w.key("kind").string(jsonTakeover)
		w.takeover(b)
	case *Exchange:
		w.key("kind").string(jsonExchange)
		w.exchange(b)
	case *Head:
		w.key("kind").string(jsonHead)
		w.key("from").uint(uint64(b.From))
	default:
		return dst, fmt.Errorf("write record %d as JSON: unknown body %T", r.Seq, r.Body)
	}
	return append(w.out, '}'), nil
}

// Block gives a block as it stands in the JSON of a message, for blocks that
// are in none, such as those of a preamble.
func (j RecordJSON) Block(dst []byte, b *Block) []byte {
	w := &jsonWriter{out: append(dst, '{')}
	w.block(b)
	return append(w.out, '}')
}

// jsonWriter appends JSON. After key comes exactly one value.
type jsonWriter struct {
	out   []byte
	codec func(Format) Codec
}

func (w *jsonWriter) key(name string) *jsonWriter {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(append(append(w.out, '"'), name...), '"', ':')
	return w
}

// element begins the next element of a list.
func (w *jsonWriter) element() *jsonWriter {
	if w.out[len(w.out)-1] != '[' {
		w.out = append(w.out, ',')
	}
	return w
}

func (w *jsonWriter) open(c byte)  { w.out = append(w.out, c) }
func (w *jsonWriter) close(c byte) { w.out = append(w.out, c) }

func (w *jsonWriter) uint(n uint64) { w.out = strconv.AppendUint(w.out, n, 10) }
func (w *jsonWriter) int(n int)     { w.out = strconv.AppendInt(w.out, int64(n), 10) }

func (w *jsonWriter) digest(d Digest) { w.string(hex.EncodeToString(d[:])) }

// The following write a field unless it is zero.

func (w *jsonWriter) intField(name string, n int) {
	if n != 0 {
		w.key(name).int(n)
	}
}

func (w *jsonWriter) seqField(name string, s Seq) {
	if s != 0 {
		w.key(name).uint(uint64(s))
	}
}

func (w *jsonWriter) flag(name string, b bool) {
	if b {
		w.key(name)
		w.out = append(w.out, "true"...)
	}
}

func (w *jsonWriter) text(name, s string) {
	if s != "" {
		w.key(name).string(s)
	}
}

func (w *jsonWriter) digestField(name string, d Digest) {
	if !d.IsZero() {
		w.key(name).digest(d)
	}
}

func (w *jsonWriter) posField(name string, p Pos) {
	if p != (Pos{}) {
		w.key(name).pos(p)
	}
}

// float writes a number so that it reads back to the bit; what is no number in
// JSON becomes its bits in hexadecimal.
func (w *jsonWriter) float(name string, f float64) {
	bits := math.Float64bits(f)
	if bits == 0 {
		return
	}
	w.key(name)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.string(fmt.Sprintf("0x%016x", bits))
		return
	}
	w.out = strconv.AppendFloat(w.out, f, 'g', -1, 64)
}

// enum writes a name, or the number of what has none.
func (w *jsonWriter) enum(n uint8, names []string) {
	if int(n) < len(names) {
		w.string(names[n])
		return
	}
	w.uint(uint64(n))
}

// string writes a text. One that is no UTF-8 becomes {"base64": …}.
func (w *jsonWriter) string(s string) {
	if !utf8.ValidString(s) {
		w.open('{')
		w.key("base64").string(base64.StdEncoding.EncodeToString([]byte(s)))
		w.close('}')
		return
	}
	const digits = "0123456789abcdef"
	w.out = append(w.out, '"')
	from := 0
	for i, c := range s {
		n := 1
		var esc string
		switch {
		case c == '"':
			esc = `\"`
		case c == '\\':
			esc = `\\`
		case c == '\n':
			esc = `\n`
		case c == '\r':
			esc = `\r`
		case c == '\t':
			esc = `\t`
		case c < ' ', 0x7f <= c && c < 0xa0, c == '\u2028', c == '\u2029':
			// Line ends to some, and what a terminal would take for orders.
			n = utf8.RuneLen(c)
			esc = `\u` + string([]byte{digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15]})
		default:
			continue
		}
		w.out = append(append(w.out, s[from:i]...), esc...)
		from = i + n
	}
	w.out = append(append(w.out, s[from:]...), '"')
}

// jsonTime is a time that RFC 3339 cannot hold: years beyond four digits,
// zones that are off by seconds.
type jsonTime struct {
	Unix   int64 `json:"unix"`
	Nanos  int64 `json:"nanos"`
	Offset int   `json:"offset"` // of the zone, in seconds
}

func (w *jsonWriter) time(t time.Time) {
	text := t.Format(time.RFC3339Nano)
	if back, err := time.Parse(time.RFC3339Nano, text); err == nil && sameMoment(back, t) {
		w.string(text)
		return
	}
	_, offset := t.Zone()
	w.open('{')
	w.key("unix")
	w.out = strconv.AppendInt(w.out, t.Unix(), 10)
	w.intField("nanos", t.Nanosecond())
	w.intField("offset", offset)
	w.close('}')
}

// sameMoment reports whether two times are the same instant in zones with the
// same offset.
func sameMoment(a, b time.Time) bool {
	_, x := a.Zone()
	_, y := b.Zone()
	return a.Equal(b) && x == y
}

func (w *jsonWriter) pos(p Pos) {
	w.open('{')
	w.key("msg").uint(uint64(p.Msg))
	w.key("block").int(p.Block)
	w.close('}')
}

func (w *jsonWriter) spans(spans []Span) {
	if len(spans) == 0 {
		return
	}
	w.key("spans").open('[')
	for _, s := range spans {
		w.element().open('{')
		w.key("first").pos(s.First)
		w.key("last").pos(s.Last)
		w.close('}')
	}
	w.close(']')
}

func (w *jsonWriter) usage(u Usage) {
	if u.IsZero() {
		return
	}
	w.key("usage").open('{')
	for i, n := range u.fields() {
		w.intField(usageNames[i], *n)
	}
	w.close('}')
}

// usageNames are the fields of a usage in the order of Usage.fields.
var usageNames = [6]string{"input", "cache_read", "cache_write", "cache_write_1h", "output", "reasoning"}

func (w *jsonWriter) exchange(x *Exchange) {
	w.text("model", x.Model)
	w.digestField("preamble", x.Preamble)
	w.digestField("view", x.View)
	w.posField("thinking", x.Thinking)
	w.usage(x.Usage)
	w.text("response_id", x.ResponseID)
	w.text("stop", x.Stop)
	w.intField("estimated", x.Estimated)
	if len(x.Plan) == 0 {
		return
	}
	w.key("plan").open('[')
	for _, p := range x.Plan {
		w.element().open('{')
		w.text("stage", p.Stage)
		w.text("skipped", p.Skipped)
		w.flag("failed", p.Failed)
		w.intField("before", p.Before)
		w.intField("after", p.After)
		w.intField("hidden", p.Hidden)
		w.close('}')
	}
	w.close(']')
}

var holdNames = []string{"none", "release", "keep", "pin"}

func (w *jsonWriter) restoration(res *Restoration) {
	w.seqField("of", res.Of)
	w.flag("open", res.Open)
	if res.Hold != HoldNone {
		w.key("hold").enum(uint8(res.Hold), holdNames)
	}
	w.spans(res.Spans)
}

func (w *jsonWriter) takeover(t *Takeover) {
	w.seqField("branch", t.Branch)
	if len(t.Moved) == 0 {
		return
	}
	w.key("moved").open('[')
	for _, m := range t.Moved {
		w.element().open('{')
		w.seqField("old", m.Old)
		w.seqField("new", m.New)
		w.intField("messages", m.Messages)
		w.close('}')
	}
	w.close(']')
}

func (w *jsonWriter) reduction(red *Reduction) {
	w.text("stage", red.Stage)
	w.text("reason", red.Reason)
	w.intField("before", red.Before)
	w.intField("after", red.After)
	w.float("scale", red.Scale)
	if red.Cost != (Cost{}) || math.Signbit(red.Cost.Rewrite) || math.Signbit(red.Cost.PerRequest) || math.Signbit(red.Cost.Remaining) || math.Signbit(red.Cost.Own) {
		w.key("cost").open('{')
		w.float("rewrite", red.Cost.Rewrite)
		w.float("per_request", red.Cost.PerRequest)
		w.float("remaining", red.Cost.Remaining)
		w.float("own", red.Cost.Own)
		w.close('}')
	}
	w.seqField("copy", red.Copy)
	if s := red.Summary; s != nil {
		w.key("summary").open('{')
		w.intField("number", s.Number)
		w.text("text", s.Text)
		w.intField("messages", s.Messages)
		w.text("model", s.Model)
		w.usage(s.Usage)
		w.text("request", s.Request)
		w.close('}')
	}
	if len(red.Items) == 0 {
		return
	}
	w.key("items").open('[')
	for _, item := range red.Items {
		w.element().open('{')
		w.spans(item.Spans)
		w.show(item.Show)
		w.close('}')
	}
	w.close(']')
}

// What an item shows, in JSON.
const (
	jsonIn   = "in"
	jsonMark = "mark"
	jsonGone = "gone"
)

func (w *jsonWriter) show(s Show) {
	switch s := s.(type) {
	case In:
		w.key("show").string(jsonIn)
		w.text("text", s.Text)
		w.intField("tokens", s.Tokens)
		w.text("note", s.Note)
	case Mark:
		w.key("show").string(jsonMark)
		if !s.At.IsZero() {
			w.key("at").time(s.At)
		}
		w.key("messages").open('[')
		for _, m := range s.Messages {
			w.element().open('{')
			w.message(m)
			w.close('}')
		}
		w.close(']')
	default:
		w.key("show").string(jsonGone)
	}
}

func (w *jsonWriter) message(m *Message) {
	w.key("role").string(string(m.Role))
	w.text("format", string(m.Format))
	w.digestField("digest", m.Digest)
	if w.codec != nil && decodesTo(w.codec, m) {
		if slices.ContainsFunc(m.Blocks, func(b Block) bool { return b.Tokens != 0 }) {
			w.key("tokens").open('[')
			for i := range m.Blocks {
				w.element().int(m.Blocks[i].Tokens)
			}
			w.close(']')
		}
	} else {
		w.key("blocks").open('[')
		for i := range m.Blocks {
			w.element().open('{')
			w.block(&m.Blocks[i])
			w.close('}')
		}
		w.close(']')
	}
	if m.Raw != nil {
		w.bytes("raw", m.Raw)
	}
}

// decodesTo reports whether the bytes of a message decode to its very blocks,
// sizes aside.
func decodesTo(codec func(Format) Codec, m *Message) bool {
	back, err := decodeMessage(codec, m.Format, m.Raw)
	if err != nil || back.Role != m.Role || len(back.Blocks) != len(m.Blocks) {
		return false
	}
	for i := range m.Blocks {
		if !sameBlock(&m.Blocks[i], &back.Blocks[i]) {
			return false
		}
	}
	return true
}

func decodeMessage(codec func(Format) Codec, f Format, raw []byte) (*Message, error) {
	if codec == nil {
		return nil, fmt.Errorf("its blocks are not listed, and need the codec of %q", f)
	}
	c := codec(f)
	if c == nil {
		return nil, fmt.Errorf("its format %q is unknown", f)
	}
	return c.DecodeMessage(raw)
}

func sameBlock(a, b *Block) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Args, b.Args) &&
		a.Error == b.Error && slices.Equal(a.Media, b.Media) && a.Signature == b.Signature &&
		a.CacheMark == b.CacheMark && a.Own == b.Own && a.Start == b.Start && a.End == b.End
}

func (w *jsonWriter) block(b *Block) {
	w.key("kind").enum(uint8(b.Kind), kindNames[:])
	w.text("id", b.ID)
	w.text("name", b.Name)
	w.text("text", b.Text)
	if len(b.Args) > 0 {
		w.bytes("args", b.Args)
	}
	w.flag("error", b.Error)
	if len(b.Media) > 0 {
		w.key("media").open('[')
		for i := range b.Media {
			m := &b.Media[i]
			w.element().open('{')
			w.key("kind").enum(uint8(m.Kind), kindNames[:])
			w.text("type", m.Type)
			w.intField("bytes", m.Bytes)
			w.intField("width", m.Width)
			w.intField("height", m.Height)
			w.digestField("digest", m.Digest)
			w.close('}')
		}
		w.close(']')
	}
	w.intField("signature", b.Signature)
	w.flag("cache_mark", b.CacheMark)
	w.flag("own", b.Own)
	w.intField("start", b.Start)
	w.intField("end", b.End)
	w.intField("tokens", b.Tokens)
}

// bytes writes bytes so that each comes back: as the JSON they are, or as a
// text in a field NAME_text, or in NAME_base64.
func (w *jsonWriter) bytes(name string, b []byte) {
	switch {
	case embeds(b):
		w.key(name)
		w.out = append(w.out, b...)
	case utf8.Valid(b):
		w.key(name + "_text").string(string(b))
	default:
		w.key(name + "_base64").string(base64.StdEncoding.EncodeToString(b))
	}
}

// maxEmbedded is how deep JSON may nest that stands inside a record's: there
// it is some levels deeper, and readers have limits.
const maxEmbedded = 500

// embeds reports whether b can stand inside a line of JSON as it is.
func embeds(b []byte) bool {
	if len(b) == 0 || b[0] <= ' ' || b[len(b)-1] <= ' ' || !utf8.Valid(b) {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\n' || c == '\r':
			return false
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxEmbedded {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return json.Valid(b)
}
