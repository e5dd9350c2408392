package furl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// formatVersion is the newest version of a record. Each record begins with the
// version that it needs; docs/format.md describes them. Version 2 added the
// takeover, everything else is version 1.
const formatVersion = 2

// versionOf is the version that a body needs.
func versionOf(b Body) byte {
	if _, ok := b.(*Takeover); ok {
		return 2
	}
	return 1
}

// EncodeRecord gives the bytes that a store keeps for a record: the head, and
// the body, which is a message's bytes on the wire and nil for everything
// else. Bodies repeat between sessions that share their beginning, so that a
// store may keep them once by content. The same record gives the same bytes.
func EncodeRecord(r Record) (head, body []byte, err error) {
	e := &encoder{out: make([]byte, 0, 256)}
	e.byte(versionOf(r.Body))
	e.uint(uint64(r.Seq))
	e.uint(uint64(r.Parent))
	e.time(r.At)
	e.byte(byte(r.By))
	switch b := r.Body.(type) {
	case *Message:
		e.byte('m')
		e.bytes(r.Chain[:])
		e.message(b)
		body = b.Raw
	case *Reduction:
		e.byte('r')
		e.reduction(b)
	case *Restoration:
		e.byte('t')
		e.uint(uint64(b.Of))
		e.bool(b.Open)
		e.spans(b.Spans)
		e.byte(byte(b.Hold))
	case *Takeover:
		e.byte('o')
		e.takeover(b)
	case *Exchange:
		e.byte('x')
		e.exchange(b)
	case *Head:
		e.byte('h')
		e.uint(uint64(b.From))
	default:
		return nil, nil, fmt.Errorf("encode record %d: unknown body %T", r.Seq, r.Body)
	}
	return e.out, body, nil
}

// DecodeRecord gives the record back. It keeps body, which must not be changed
// afterwards, and nothing of head. Bytes that EncodeRecord cannot have written
// are an error wrapping ErrDamaged, those of a newer version one wrapping
// ErrNewerFormat.
func DecodeRecord(head, body []byte) (Record, error) {
	d := &decoder{in: head, body: body}
	version := d.byte()
	if version > formatVersion {
		return Record{}, fmt.Errorf("decode a record of version %d: %w", version, ErrNewerFormat)
	}
	var r Record
	r.Seq, r.Parent = Seq(d.uint()), Seq(d.uint())
	r.At = d.time()
	r.By = Actor(d.byte())
	switch kind := d.byte(); kind {
	case 'm':
		copy(r.Chain[:], d.bytes())
		r.Body = d.message()
	case 'r':
		r.Body = d.reduction()
	case 't':
		r.Body = &Restoration{Of: Seq(d.uint()), Open: d.bool(), Spans: d.spans(), Hold: Hold(d.byte())}
	case 'o':
		r.Body = d.takeover()
	case 'x':
		r.Body = d.exchange()
	case 'h':
		r.Body = &Head{From: Seq(d.uint())}
	default:
		d.fail(fmt.Sprintf("kind %q", kind))
	}
	if version == 0 {
		d.fail("version 0")
	}
	if len(d.in) > 0 {
		d.fail("more bytes than a record has")
	}
	if d.err != nil {
		return Record{}, fmt.Errorf("decode record %d: %w: %w", r.Seq, ErrDamaged, d.err)
	}
	return r, nil
}

// ChainOf gives the chain of an encoded record's head without decoding the
// rest; false if it is not of a message, or damaged.
func ChainOf(head []byte) (Digest, bool) {
	d := &decoder{in: head}
	d.byte()
	d.uint()
	d.uint()
	d.time()
	d.byte()
	if d.byte() != 'm' {
		return Digest{}, false
	}
	chain := d.digest()
	return chain, d.err == nil
}

// encoder appends fields: numbers as varints, strings after their length.
type encoder struct {
	out []byte
	raw []byte // of the message at hand
	// at and end are the part of raw in which the block's next text is
	// looked for: texts come in order.
	at, end int
}

func (e *encoder) byte(b byte)   { e.out = append(e.out, b) }
func (e *encoder) uint(n uint64) { e.out = binary.AppendUvarint(e.out, n) }
func (e *encoder) int(n int)     { e.out = binary.AppendVarint(e.out, int64(n)) }
func (e *encoder) float(f float64) {
	e.out = binary.LittleEndian.AppendUint64(e.out, math.Float64bits(f))
}
func (e *encoder) bytes(b []byte) {
	e.uint(uint64(len(b)))
	e.out = append(e.out, b...)
}
func (e *encoder) string(s string) {
	e.uint(uint64(len(s)))
	e.out = append(e.out, s...)
}
func (e *encoder) bool(b bool) {
	if b {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

// time keeps the instant to the nanosecond and the offset of its zone to the
// second, a zero time as a single 0.
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.byte(0)
		return
	}
	_, offset := t.Zone()
	e.byte(1)
	e.out = binary.AppendVarint(e.out, t.Unix())
	e.uint(uint64(t.Nanosecond()))
	e.int(offset)
}

func (e *encoder) spans(spans []Span) {
	e.uint(uint64(len(spans)))
	for _, s := range spans {
		e.pos(s.First)
		e.pos(s.Last)
	}
}

func (e *encoder) pos(p Pos) {
	e.uint(uint64(p.Msg))
	e.int(p.Block)
}

func (e *encoder) usage(u Usage) {
	for _, n := range u.fields() {
		e.int(*n)
	}
}

// fields lists what a usage consists of, in the order in which it is stored.
func (u *Usage) fields() [6]*int {
	return [6]*int{&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.Output, &u.Reasoning}
}

func (e *encoder) exchange(x *Exchange) {
	e.string(x.Model)
	e.bytes(x.Preamble[:])
	e.bytes(x.View[:])
	e.pos(x.Thinking)
	e.usage(x.Usage)
	e.string(x.ResponseID)
	e.string(x.Stop)
	e.int(x.Estimated)
	e.uint(uint64(len(x.Plan)))
	for _, p := range x.Plan {
		e.string(p.Stage)
		e.string(p.Skipped)
		e.bool(p.Failed)
		e.int(p.Before)
		e.int(p.After)
		e.int(p.Hidden)
	}
}

func (e *encoder) reduction(red *Reduction) {
	e.string(red.Stage)
	e.string(red.Reason)
	e.int(red.Before)
	e.int(red.After)
	e.float(red.Scale)
	e.float(red.Cost.Rewrite)
	e.float(red.Cost.PerRequest)
	e.float(red.Cost.Remaining)
	e.float(red.Cost.Own)
	e.uint(uint64(red.Copy))
	e.bool(red.Summary != nil)
	if s := red.Summary; s != nil {
		e.int(s.Number)
		e.string(s.Text)
		e.int(s.Messages)
		e.string(s.Model)
		e.usage(s.Usage)
		e.string(s.Request)
	}
	e.uint(uint64(len(red.Items)))
	for _, item := range red.Items {
		e.spans(item.Spans)
		e.show(item.Show)
	}
}

func (e *encoder) show(s Show) {
	switch s := s.(type) {
	case In:
		e.byte('i')
		e.string(s.Text)
		e.int(s.Tokens)
		e.string(s.Note)
	case Mark:
		e.byte('m')
		e.time(s.At)
		e.uint(uint64(len(s.Messages)))
		for _, m := range s.Messages {
			e.bool(m.Raw != nil)
			if m.Raw != nil {
				e.bytes(m.Raw)
			}
			e.message(m)
		}
	default:
		e.byte('g')
	}
}

func (e *encoder) takeover(t *Takeover) {
	e.uint(uint64(t.Branch))
	e.uint(uint64(len(t.Moved)))
	for _, m := range t.Moved {
		e.uint(uint64(m.Old))
		e.uint(uint64(m.New))
		e.uint(uint64(m.Messages))
	}
}

// decoder reads what encoder wrote. The first thing that does not fit ends it;
// everything after that is zero.
type decoder struct {
	in, body []byte
	err      error
}

func (d *decoder) fail(text string) {
	if d.err == nil {
		d.err = errors.New(text)
	}
	d.in = nil
}

func (d *decoder) byte() byte {
	if len(d.in) == 0 {
		d.fail("cut off")
		return 0
	}
	b := d.in[0]
	d.in = d.in[1:]
	return b
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.in)
	if size <= 0 {
		d.fail("not a number")
		return 0
	}
	d.in = d.in[size:]
	return n
}

func (d *decoder) int() int {
	n, size := binary.Varint(d.in)
	if size <= 0 {
		d.fail("not a number")
		return 0
	}
	d.in = d.in[size:]
	return int(n)
}

func (d *decoder) float() float64 {
	if len(d.in) < 8 {
		d.fail("cut off")
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(d.in))
	d.in = d.in[8:]
	return f
}

// bytes gives a part of the input, which the caller copies if it keeps it.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.in)) {
		d.fail("cut off")
		return nil
	}
	b := d.in[:n:n]
	d.in = d.in[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes()) }

// count reads how many elements follow, each of at least size bytes, so that
// a wrong number cannot ask for more memory than the input has.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.in)/size) {
		d.fail("more elements than bytes")
		return 0
	}
	return int(n)
}

func (d *decoder) time() time.Time {
	if !d.bool() {
		return time.Time{}
	}
	sec, size := binary.Varint(d.in)
	if size <= 0 {
		d.fail("not a time")
		return time.Time{}
	}
	d.in = d.in[size:]
	t := time.Unix(sec, int64(d.uint()))
	if offset := d.int(); offset != 0 {
		return t.In(time.FixedZone("", offset))
	}
	return t.UTC()
}

func (d *decoder) pos() Pos { return Pos{Msg: Seq(d.uint()), Block: d.int()} }

func (d *decoder) spans() []Span {
	n := d.count(4)
	if n == 0 {
		return nil
	}
	spans := make([]Span, n)
	for i := range spans {
		spans[i] = Span{First: d.pos(), Last: d.pos()}
	}
	return spans
}

func (d *decoder) digest() (x Digest) {
	copy(x[:], d.bytes())
	return x
}

func (d *decoder) usage() (u Usage) {
	for _, n := range u.fields() {
		*n = d.int()
	}
	return u
}

func (d *decoder) exchange() *Exchange {
	x := &Exchange{
		Model: d.string(), Preamble: d.digest(), View: d.digest(), Thinking: d.pos(), Usage: d.usage(),
		ResponseID: d.string(), Stop: d.string(), Estimated: d.int(),
	}
	for range d.count(6) {
		x.Plan = append(x.Plan, PlanStep{
			Stage: d.string(), Skipped: d.string(), Failed: d.bool(), Before: d.int(), After: d.int(), Hidden: d.int(),
		})
	}
	return x
}

func (d *decoder) reduction() *Reduction {
	red := &Reduction{
		Stage: d.string(), Reason: d.string(), Before: d.int(), After: d.int(), Scale: d.float(),
		Cost: Cost{Rewrite: d.float(), PerRequest: d.float(), Remaining: d.float(), Own: d.float()},
		Copy: Seq(d.uint()),
	}
	if d.bool() {
		red.Summary = &Summary{
			Number: d.int(), Text: d.string(), Messages: d.int(), Model: d.string(), Usage: d.usage(), Request: d.string(),
		}
	}
	for range d.count(2) {
		red.Items = append(red.Items, Item{Spans: d.spans(), Show: d.show()})
	}
	return red
}

func (d *decoder) takeover() *Takeover {
	t := &Takeover{Branch: Seq(d.uint())}
	for range d.count(3) {
		t.Moved = append(t.Moved, Moved{Old: Seq(d.uint()), New: Seq(d.uint()), Messages: int(d.uint())})
	}
	return t
}

func (d *decoder) show() Show {
	switch kind := d.byte(); kind {
	case 'i':
		return In{Text: d.string(), Tokens: d.int(), Note: d.string()}
	case 'm':
		m := Mark{At: d.time()}
		for range d.count(2) {
			in := &decoder{in: d.in}
			if in.bool() {
				in.body = slices.Clone(in.bytes())
			}
			m.Messages = append(m.Messages, in.message())
			if in.err != nil {
				d.fail(in.err.Error())
			}
			d.in = in.in
		}
		return m
	case 'g':
		return Gone{}
	default:
		d.fail(fmt.Sprintf("show %q", kind))
		return Gone{}
	}
}
