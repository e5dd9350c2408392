package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/openai"
)

// scribe writes rendered messages into a builder.
type scribe struct {
	b *builder
	r *renderer

	held     []piece // results of the newest step
	heldAt   time.Time
	heldLine int
	newest   time.Time // time of the newest message added
}

func newScribe(in *input, wire furl.Format, model string) *scribe {
	s := &scribe{b: newBuilder(in, codecOf(wire)), r: newRenderer(wire, model)}
	s.b.Model = model
	return s
}

// add puts rendered messages into the builder and returns the last one.
func (s *scribe) add(at time.Time, line int, msgs []*furl.Message, err error) (last ref) {
	if err != nil {
		s.b.in.skip(line, "%v", err)
	}
	// A message that waited for a result gets a time after it.
	if at.Before(s.newest) && !at.IsZero() {
		at = s.newest
	}
	for _, m := range msgs {
		s.newest = at
		last = s.b.message(at, line, m)
	}
	return last
}

// system adds instructions: a message if the format allows it, otherwise a
// part of the preamble.
func (s *scribe) system(at time.Time, line int, text string) {
	if s.r.wire == furl.FormatAnthropic {
		s.b.preamble(text)
		return
	}
	s.settle()
	msgs, err := s.r.system(text)
	s.add(at, line, msgs, err)
}

func (s *scribe) user(at time.Time, line int, pieces ...piece) ref {
	s.settle()
	msgs, err := s.r.user(pieces)
	return s.add(at, line, msgs, err)
}

// observed adds a tool's output that was sent as words of the user.
func (s *scribe) observed(at time.Time, line int, failed bool, pieces ...piece) ref {
	s.settle()
	msgs, err := s.r.user(pieces)
	for _, m := range msgs {
		for i := range m.Blocks {
			b := &m.Blocks[i]
			b.Observation, b.Error = true, failed
			b.ErrorText = s.r.unflagged && !failed && openai.FailedText(b.Text)
		}
	}
	return s.add(at, line, msgs, err)
}

// reply announces a request; see builder.reply.
func (s *scribe) reply(at time.Time, ex furl.Exchange) *furl.Exchange {
	s.settle()
	return s.b.reply(at, ex)
}

// assistant adds a reply of the model. The ids of calls in pieces become wire
// ids.
func (s *scribe) assistant(at time.Time, line int, pieces []piece) ref {
	msgs, err := s.r.assistant(pieces)
	return s.add(at, line, msgs, err)
}

// result keeps a result until the other results of the step are read:
// Anthropic requires all results of a step in one message. Its id is the wire
// id.
func (s *scribe) result(at time.Time, line int, p piece) {
	p.kind = furl.KindResult
	s.held, s.heldLine = append(s.held, p), line
	if !at.IsZero() {
		s.heldAt = at
	}
}

// settle adds the results held back.
func (s *scribe) settle() {
	if len(s.held) == 0 {
		return
	}
	msgs, err := s.r.results(s.held)
	s.add(s.heldAt, s.heldLine, msgs, err)
	for i := range s.held {
		if s.held[i].made {
			s.b.Results-- // it was not recorded
		}
	}
	s.held, s.heldAt, s.heldLine = nil, time.Time{}, 0
}

// aside runs f on a separate branch: what f adds was displayed or received,
// but not sent back to the model.
func (s *scribe) aside(at time.Time, f func()) {
	s.settle()
	from := s.b.last
	f()
	s.settle()
	s.b.rewind(at, from)
}

func (s *scribe) finish() *Session {
	s.settle()
	return s.b.finish()
}

// preamble adds a text to the preamble.
func (b *builder) preamble(text string) {
	if text != "" {
		b.Preamble = append(b.Preamble, furl.Block{Kind: furl.KindText, Text: text})
	}
}

// tool adds a tool's JSON definition to the preamble.
func (b *builder) tool(raw []byte) {
	b.Preamble = append(b.Preamble, furl.Block{Kind: furl.KindOpaque, Name: "tool", Text: string(raw)})
}

// words is a piece of text.
func words(text string) piece { return piece{kind: furl.KindText, text: text} }

// lenient decodes JSON. Fields of an unexpected type stay empty.
func lenient(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// startsWith reports whether the file starts with a character, after white
// space.
func (in *input) startsWith(c byte) bool {
	data := bytes.TrimLeft(in.data, " \t\r\n")
	return len(data) > 0 && data[0] == c
}

// elements reads the array in field name of the object in data, or data itself
// if name is empty. If the array is truncated, elements reports that and
// returns the elements before that point.
func (in *input) elements(data []byte, name string) [][]byte {
	r := rawjson.NewReader(data)
	var list [][]byte
	if name == "" {
		list = in.readList(r)
	} else {
		for key := range r.Fields() {
			if string(key) == name && r.Kind() == '[' {
				list = in.readList(r)
			}
		}
	}
	if in.refused != nil {
		return nil
	}
	if err := r.End(); err != nil {
		in.skip(0, "the file is truncated after %s: %v", plural(len(list), "record"), err)
	}
	return list
}

// readList consumes an array of records and returns its elements up to the
// first error.
func (in *input) readList(r *rawjson.Reader) (list [][]byte) {
	for range r.Elements() {
		if !in.countLine() {
			return nil
		}
		if raw := r.Raw(); raw != nil {
			if !in.decodable(raw) {
				return nil
			}
			list = append(list, raw)
		}
	}
	return list
}

// readList consumes an array and returns its elements up to the first error.
func readList(r *rawjson.Reader) (list [][]byte) {
	for range r.Elements() {
		if raw := r.Raw(); raw != nil {
			list = append(list, raw)
		}
	}
	return list
}

// listOf returns the elements of a JSON array; none for other data.
func listOf(raw []byte) [][]byte {
	r := rawjson.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	return readList(r)
}

// parseTime reads the time formats that recordings use; the zero time if s
// has none of them. A time without a zone is taken as UTC.
func parseTime(s string) time.Time {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// milliTime converts Unix milliseconds; zero if ms is out of range.
func milliTime(ms float64) time.Time {
	const year2100 = 4102444800000
	if !(ms > 0 && ms < year2100) {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// plural returns a count and its noun, such as "1 file" or "2 files".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// times says how often something happened.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// commonModel returns the model named most often, on a tie the first one.
func commonModel(names []string) string {
	count := map[string]int{}
	best := ""
	for _, name := range names {
		if name != "" {
			count[name]++
		}
	}
	for _, name := range names {
		if count[name] > count[best] {
			best = name
		}
	}
	return best
}

// dataPicture reads an image from a data URL, or refers to it by another URL.
func dataPicture(mime, url string) (picture, bool) {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		head, data, ok := strings.Cut(rest, ",")
		head, base64 := strings.CutSuffix(head, ";base64")
		if !ok || !base64 {
			return picture{}, false
		}
		if m, _, _ := strings.Cut(head, ";"); m != "" {
			mime = m
		}
		return picture{mime: mime, data: data}, strings.HasPrefix(mime, "image/")
	}
	web := strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
	return picture{url: url}, web && strings.HasPrefix(mime, "image/")
}

// rawText returns the text of a JSON string, or other JSON unchanged.
func rawText(raw []byte) string {
	if s := rawjson.Unquote(raw); s != "" {
		return s
	}
	return string(raw)
}
