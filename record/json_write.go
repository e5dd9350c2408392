package record

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// jsonWriter appends JSON. Each key is followed by exactly one value.
type jsonWriter struct {
	out    []byte
	codec  func(furl.Format) protocol.Codec
	groups []int // where each open group or element begins, -1 if it stays though empty
}

var jsonWriters = sync.Pool{New: func() any { return new(jsonWriter) }}

func newJSONWriter(dst []byte, codec func(furl.Format) protocol.Codec) *jsonWriter {
	w := jsonWriters.Get().(*jsonWriter)
	w.out, w.codec = append(dst, '{'), codec
	return w
}

func (w *jsonWriter) done() {
	*w = jsonWriter{groups: emptied(w.groups)}
	jsonWriters.Put(w)
}

func (w *jsonWriter) key(name string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(append(append(w.out, '"'), name...), '"', ':')
}

func (w *jsonWriter) number(n int) { w.out = strconv.AppendInt(w.out, int64(n), 10) }

func (w *jsonWriter) seq(name string, v *furl.Seq) {
	w.key(name)
	w.out = strconv.AppendUint(w.out, uint64(*v), 10)
}

func (w *jsonWriter) ref(name string, v *furl.Seq) {
	if *v != 0 {
		w.seq(name, v)
	}
}

func (w *jsonWriter) int(name string, v *int) {
	if *v != 0 {
		w.key(name)
		w.number(*v)
	}
}

func (w *jsonWriter) count(name string, v *int) { w.int(name, v) }

// float writes a number so that it reads back to the bit. A value that JSON
// has no number for becomes its bits in hexadecimal.
func (w *jsonWriter) float(name string, v *float64) {
	bits := math.Float64bits(*v)
	if bits == 0 {
		return
	}
	w.key(name)
	if math.IsNaN(*v) || math.IsInf(*v, 0) {
		w.quote(fmt.Sprintf("0x%016x", bits))
		return
	}
	w.out = strconv.AppendFloat(w.out, *v, 'g', -1, 64)
}

func (w *jsonWriter) bool(name string, v *bool) {
	if *v {
		w.key(name)
		w.out = append(w.out, "true"...)
	}
}

func (w *jsonWriter) string(name string, v *string) {
	if *v != "" {
		w.key(name)
		w.quote(*v)
	}
}

func (w *jsonWriter) digest(name string, v *furl.Digest) {
	if !v.IsZero() {
		w.key(name)
		w.out = append(hex.AppendEncode(append(w.out, '"'), v[:]), '"')
	}
}

func (w *jsonWriter) time(name string, v *time.Time) {
	if v.IsZero() {
		return
	}
	w.key(name)
	text := v.Format(time.RFC3339Nano)
	if back, err := time.Parse(time.RFC3339Nano, text); err == nil && sameMoment(back, *v) {
		w.quote(text)
		return
	}
	_, offset := v.Zone()
	odd, _ := json.Marshal(jsonTime{v.Unix(), int64(v.Nanosecond()), offset}) // three numbers: no error
	w.out = append(w.out, odd...)
}

func (w *jsonWriter) pos(name string, v *furl.Pos) {
	if *v == (furl.Pos{}) {
		return
	}
	w.key(name)
	w.out = append(w.out, '{')
	w.seq("msg", &v.Msg)
	w.key("block")
	w.number(v.Block)
	w.out = append(w.out, '}')
}

func (w *jsonWriter) enum(name string, v *uint8, names []string) {
	switch {
	case int(*v) >= len(names):
		w.key(name)
		w.number(int(*v))
	case names[*v] != "none":
		w.key(name)
		w.quote(names[*v])
	}
}

func (w *jsonWriter) union(name string, of []alternative, v int) int {
	w.key(name)
	w.quote(of[v].name)
	return v
}

func (w *jsonWriter) open(name string) {
	w.groups = append(w.groups, len(w.out))
	w.key(name)
	w.out = append(w.out, '{')
}

func (w *jsonWriter) openIf(name string, there bool) bool {
	if there {
		w.groups = append(w.groups, -1)
		w.key(name)
		w.out = append(w.out, '{')
	}
	return there
}

func (w *jsonWriter) close() {
	last := len(w.groups) - 1
	from := w.groups[last]
	w.groups = w.groups[:last]
	if from >= 0 && w.out[len(w.out)-1] == '{' {
		w.out = w.out[:from]
		return
	}
	w.out = append(w.out, '}')
}

func (w *jsonWriter) list(name string, n, _ int) int {
	if n > 0 {
		w.key(name)
		w.out = append(w.out, '[')
	}
	return n
}

func (w *jsonWriter) element() {
	w.comma()
	w.groups = append(w.groups, -1)
	w.out = append(w.out, '{')
}

func (w *jsonWriter) comma() {
	if w.out[len(w.out)-1] != '[' {
		w.out = append(w.out, ',')
	}
}

func (w *jsonWriter) closeList(n int) {
	if n > 0 {
		w.out = append(w.out, ']')
	}
}

func (w *jsonWriter) span(int, int)               {}
func (w *jsonWriter) text(name string, v *string) { w.string(name, v) }

func (w *jsonWriter) json(name string, v *json.RawMessage) {
	if len(*v) > 0 {
		w.bytes(name, *v)
	}
}

func (w *jsonWriter) inside(*furl.Message) {}

func (w *jsonWriter) noBlocks() {
	w.key("blocks")
	w.out = append(w.out, "[]"...)
}

func (w *jsonWriter) writeRaw(raw []byte) {
	if raw != nil {
		w.bytes("raw", raw)
	}
}

// writeSizes writes the sizes of blocks that are not written themselves.
func (w *jsonWriter) writeSizes(blocks []furl.Block) {
	if !slices.ContainsFunc(blocks, func(b furl.Block) bool { return b.Tokens != 0 }) {
		return
	}
	w.key("tokens")
	w.out = append(w.out, '[')
	for i := range blocks {
		w.comma()
		w.number(blocks[i].Tokens)
	}
	w.out = append(w.out, ']')
}

// quote writes a text. One that is not UTF-8 becomes {"base64": …}.
func (w *jsonWriter) quote(s string) {
	if !utf8.ValidString(s) {
		w.out = append(w.out, `{"base64":`...)
		w.quote(base64.StdEncoding.EncodeToString([]byte(s)))
		w.out = append(w.out, '}')
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

// bytes writes bytes so that each comes back: as the JSON they are, or as a
// text in a field NAME_text, or in NAME_base64.
func (w *jsonWriter) bytes(name string, b []byte) {
	switch {
	case embeds(b):
		w.key(name)
		w.out = append(w.out, b...)
	case utf8.Valid(b):
		w.key(name + "_text")
		w.quote(string(b))
	default:
		w.key(name + "_base64")
		w.quote(base64.StdEncoding.EncodeToString(b))
	}
}

// maxEmbedded is how deep JSON may nest that is inside a record's: there
// it is some levels deeper, and readers have limits.
const maxEmbedded = 500

// embeds reports whether b can be inside a line of JSON as it is.
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
