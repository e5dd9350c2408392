package record

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// jsonReader reads what jsonWriter wrote. It splits the object at hand into its
// fields and decodes a field when it is asked for.
type jsonReader struct {
	codec  func(furl.Format) protocol.Codec
	fields []jsonField // of the object at hand, after those of the objects around it
	levels []jsonLevel
	lists  [][]byte // elements of the lists at hand, those of the innermost last
	raw    []byte   // of the message at hand
	err    error
}

type jsonField struct {
	name  []byte
	value rawjson.Value
}

// jsonLevel is an object or a list that is being read.
type jsonLevel struct {
	fields, lists int // where its fields and elements begin among all
	next          int // the element of a list to be read next
}

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

func newJSONReader(data []byte, codec func(furl.Format) protocol.Codec) *jsonReader {
	d := jsonReaders.Get().(*jsonReader)
	d.codec = codec
	d.enter(data)
	return d
}

func (d *jsonReader) done() {
	*d = jsonReader{fields: emptied(d.fields), levels: emptied(d.levels), lists: emptied(d.lists)}
	jsonReaders.Put(d)
}

// emptied is a list without its elements, whose memory is used again unless it
// is much.
func emptied[T any](list []T) []T {
	const most = 1 << 10
	if cap(list) > most {
		return nil
	}
	clear(list[:cap(list)])
	return list[:0]
}

func (d *jsonReader) fail(name string, err error) {
	if d.err == nil {
		d.err = fmt.Errorf("%s: %w", name, err)
	}
}

// enter makes an object the one at hand. No data is an object without fields.
func (d *jsonReader) enter(data []byte) {
	d.levels = append(d.levels, jsonLevel{fields: len(d.fields), lists: len(d.lists)})
	if data == nil || d.err != nil {
		return
	}
	r := rawjson.NewReader(data)
	for name := range r.Fields() {
		d.fields = append(d.fields, jsonField{name: name, value: r.Value()})
	}
	if err := r.End(); err != nil && d.err == nil {
		d.err = err
	}
}

func (d *jsonReader) level() *jsonLevel { return &d.levels[len(d.levels)-1] }

// value finds a field of the object at hand, of several with a name the last.
// A field that is null is as good as missing.
func (d *jsonReader) value(name string) (v rawjson.Value, ok bool) {
	v, ok = d.valueOrNull(name)
	if ok && string(v.Raw) == "null" {
		return rawjson.Value{}, false
	}
	return v, ok
}

func (d *jsonReader) valueOrNull(name string) (v rawjson.Value, ok bool) {
	if d.err != nil {
		return v, false
	}
	l := d.level()
	for i := len(d.fields) - 1; i >= l.fields; i-- {
		if string(d.fields[i].name) == name {
			return d.fields[i].value, true
		}
	}
	return v, false
}

func (d *jsonReader) seq(name string, v *furl.Seq) {
	if in, ok := d.value(name); ok {
		n, err := strconv.ParseUint(string(in.Raw), 10, 64)
		if err != nil {
			d.fail(name, err)
		}
		*v = furl.Seq(n)
	}
}

func (d *jsonReader) ref(name string, v *furl.Seq) { d.seq(name, v) }

func (d *jsonReader) int(name string, v *int) {
	if in, ok := d.value(name); ok {
		*v = d.number(name, in.Raw)
	}
}

func (d *jsonReader) number(name string, raw []byte) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		d.fail(name, err)
	}
	return n
}

func (d *jsonReader) count(name string, v *int) { d.int(name, v) }

func (d *jsonReader) float(name string, v *float64) {
	in, ok := d.value(name)
	if !ok {
		return
	}
	var err error
	if in.Raw[0] != '"' {
		if *v, err = strconv.ParseFloat(string(in.Raw), 64); err != nil {
			d.fail(name, err)
		}
		return
	}
	hexadecimal, ok := strings.CutPrefix(in.Text(), "0x")
	bits, err := strconv.ParseUint(hexadecimal, 16, 64)
	if !ok || err != nil {
		d.fail(name, fmt.Errorf("invalid number %.40q", in.Text()))
	}
	*v = math.Float64frombits(bits)
}

func (d *jsonReader) bool(name string, v *bool) {
	if in, ok := d.value(name); ok {
		switch string(in.Raw) {
		case "true":
			*v = true
		case "false":
		default:
			d.fail(name, errors.New("expected true or false"))
		}
	}
}

// string reads a text, or {"base64": …} of bytes that are not UTF-8.
func (d *jsonReader) string(name string, v *string) {
	in, ok := d.value(name)
	if !ok {
		return
	}
	switch in.Raw[0] {
	case '"':
		*v = in.Text()
	case '{':
		d.enter(in.Raw)
		if b := d.base64("base64"); b != nil {
			*v = string(*b)
		}
		d.close()
	default:
		d.fail(name, errors.New("expected a string"))
	}
}

// base64 reads bytes in base64, nil if the field is missing.
func (d *jsonReader) base64(name string) *[]byte {
	in, ok := d.value(name)
	if !ok {
		return nil
	}
	if in.Raw[0] != '"' {
		d.fail(name, errors.New("expected a string"))
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(in.Text())
	if err != nil {
		d.fail(name, err)
	}
	return &b
}

func (d *jsonReader) digest(name string, v *furl.Digest) {
	in, ok := d.value(name)
	if !ok {
		return
	}
	text := in.Inside()
	if hex.DecodedLen(len(text)) != len(v) {
		d.fail(name, fmt.Errorf("invalid digest %.80q", in.Raw))
		return
	}
	if _, err := hex.Decode(v[:], text); err != nil {
		d.fail(name, err)
	}
}

func (d *jsonReader) time(name string, v *time.Time) {
	in, ok := d.value(name)
	if !ok {
		return
	}
	if in.Raw[0] == '{' {
		var t jsonTime
		if err := json.Unmarshal(in.Raw, &t); err != nil {
			d.fail(name, err)
			return
		}
		if t.Nanos < 0 || t.Nanos > 999_999_999 {
			d.fail(name, fmt.Errorf("invalid number of nanoseconds %d", t.Nanos))
			return
		}
		*v = inZone(time.Unix(t.Unix, t.Nanos), t.Offset)
		return
	}
	if in.Raw[0] != '"' {
		d.fail(name, errors.New("expected a string"))
		return
	}
	text := in.Text()
	if text == "" {
		return
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		d.fail(name, err)
		return
	}
	_, offset := at.Zone()
	*v = inZone(at, offset)
}

func (d *jsonReader) pos(name string, v *furl.Pos) {
	if in, ok := d.value(name); ok {
		d.enter(in.Raw)
		d.seq("msg", &v.Msg)
		d.int("block", &v.Block)
		d.close()
	}
}

func (d *jsonReader) enum(name string, v *uint8, names []string) {
	in, ok := d.value(name)
	if !ok {
		return
	}
	if in.Raw[0] != '"' {
		n, err := strconv.ParseUint(string(in.Raw), 10, 8)
		if err != nil {
			d.fail(name, err)
		}
		*v = uint8(n)
		return
	}
	i := slices.Index(names, in.Text())
	if i < 0 {
		d.fail(name, fmt.Errorf("unknown value %.40q: expected one of %s", in.Text(), strings.Join(names, ", ")))
		return
	}
	*v = uint8(i)
}

func (d *jsonReader) union(name string, of []alternative, _ int) int {
	in, ok := d.value(name)
	if !ok {
		d.fail(name, errors.New("missing"))
		return -1
	}
	for i := range of {
		if in.Text() == of[i].name {
			return i
		}
	}
	d.fail(name, fmt.Errorf("unknown value %.40q", in.Raw))
	return -1
}

func (d *jsonReader) open(name string) {
	in, _ := d.value(name)
	d.enter(in.Raw)
}

func (d *jsonReader) openIf(name string, _ bool) bool {
	in, ok := d.value(name)
	if ok {
		d.enter(in.Raw)
	}
	return ok
}

func (d *jsonReader) close() {
	l := d.level()
	d.fields, d.lists = d.fields[:l.fields], d.lists[:l.lists]
	d.levels = d.levels[:len(d.levels)-1]
}

func (d *jsonReader) list(name string, _, _ int) int {
	in, ok := d.value(name)
	if !ok {
		return 0
	}
	from := len(d.lists)
	r := rawjson.NewReader(in.Raw)
	for range r.Elements() {
		d.lists = append(d.lists, r.Raw())
	}
	if err := r.End(); err != nil {
		d.fail(name, err)
	}
	n := len(d.lists) - from
	if n > 0 {
		d.levels = append(d.levels, jsonLevel{fields: len(d.fields), lists: from, next: from})
	}
	return n
}

func (d *jsonReader) element() {
	l := d.level()
	next := d.lists[l.next]
	l.next++
	d.enter(next)
}

func (d *jsonReader) closeList(n int) {
	if n > 0 {
		d.close()
	}
}

func (d *jsonReader) text(name string, v *string) { d.string(name, v) }

func (d *jsonReader) json(name string, v *json.RawMessage) {
	if b := d.bytes(name); len(b) > 0 {
		*v = b
	}
}

// bytes reads the bytes of a field in the one of its three forms that is
// there, nil if none is.
func (d *jsonReader) bytes(name string) json.RawMessage {
	if in, ok := d.valueOrNull(name); ok {
		return slices.Clone(in.Raw)
	}
	if in, ok := d.value(name + "_text"); ok {
		return append(json.RawMessage{}, in.Text()...)
	}
	if b := d.base64(name + "_base64"); b != nil {
		return append(json.RawMessage{}, *b...)
	}
	return nil
}

func (d *jsonReader) span(start, end int) {
	if start < 0 || end < start || end > len(d.raw) {
		d.fail("block", fmt.Errorf("it is at bytes %d to %d of %d", start, end, len(d.raw)))
	}
}

func (d *jsonReader) inside(*furl.Message) {}

// readRaw reads a message's bytes, in which its blocks are.
func (d *jsonReader) readRaw(m *furl.Message) {
	m.Raw = d.bytes("raw")
	d.raw = m.Raw
}

func (d *jsonReader) hasBlocks() bool {
	_, ok := d.value("blocks")
	return ok
}

// decodeBlocks decodes the blocks of a message whose blocks are not written.
func (d *jsonReader) decodeBlocks(m *furl.Message) {
	if d.err != nil {
		return
	}
	back, err := decodeMessage(d.codec, m.Format, m.Raw)
	if err != nil {
		d.fail("decode the message", err)
		return
	}
	m.Blocks = back.Blocks
	if _, ok := d.value("tokens"); ok {
		d.sizes(m.Blocks)
	}
}

// sizes reads the sizes of blocks that are not written themselves.
func (d *jsonReader) sizes(blocks []furl.Block) {
	n := d.list("tokens", 0, 0)
	if n != len(blocks) {
		d.fail("tokens", fmt.Errorf("the message has %d blocks, and sizes of %d", len(blocks), n))
	}
	for i := range min(n, len(blocks)) {
		blocks[i].Tokens = d.number("tokens", d.lists[d.level().lists+i])
	}
	d.closeList(n)
}
