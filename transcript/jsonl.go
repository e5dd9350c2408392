package transcript

import (
	"bytes"
	"iter"

	"github.com/furlhq/furl/internal/rawjson"
)

// splitLines yields the lines of data with their 1-based numbers, without
// line ends. It trims white space, byte order marks and NULs (left by a crash
// or a full disk), and skips empty lines.
func splitLines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for n := 1; len(data) > 0; n++ {
			end := firstLine(data)
			line := trimLine(data[:end])
			data = data[end:]
			if len(line) > 0 && !yield(n, line[:len(line):len(line)]) {
				return
			}
		}
	}
}

// trimLine removes what splitLines trims from a line.
func trimLine(line []byte) []byte {
	line = bytes.Trim(line, " \t\r\n\x00")
	return bytes.Trim(bytes.TrimPrefix(line, utf8BOM), " \t\r\n\x00")
}

// eachObject yields the JSON objects at the start of a line: one, or several
// if a newline between two was lost. If something else follows them, the last
// yield is an error.
func eachObject(line []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for len(line) > 0 {
			r := rawjson.NewReader(line)
			if r.Kind() != '{' {
				yield(nil, &rawjson.Error{Offset: 0, Text: "expected a JSON object"})
				return
			}
			o := r.Raw()
			if err := r.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(o, nil) {
				return
			}
			line = bytes.Trim(line[r.Pos():], " \t\x00")
		}
	}
}

// records yields the JSON objects of JSON Lines and their line numbers. It
// skips and reports broken data: lines above the limit, lines that are not a
// JSON object, the truncated rest of a line.
func (in *input) records() iter.Seq2[int, []byte] {
	return recordsAs(in, rawRecord)
}

func rawRecord(_ int, r *rawjson.Reader, buf []byte) []byte {
	r.Skip()
	return buf
}

// recordsAs is records for what parse makes of an object: it gets a Reader of buf before the
// object. Most lines are one object, and are read once. What parse returns for others is dropped, so it must not
// change anything.
func recordsAs[T any](in *input, parse func(line int, r *rawjson.Reader, buf []byte) T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		parsed := func(line int, o []byte) T { return parse(line, rawjson.NewReader(o), o) }
		if !in.parts.begin(func(line int, o []byte) bool { return yield(line, parsed(line, o)) }) {
			return
		}
		for n, line := range in.eachLine() {
			if len(line) > in.maxLine {
				in.skip(n, "the line has %d bytes, the limit is %d", len(line), in.maxLine)
				continue
			}
			if r := rawjson.NewReader(line); r.Kind() == '{' {
				if v := parse(n, r, line); r.End() == nil {
					if in.parts.ends(in, n, line) || !in.countLine() || !in.usageOnly && !in.decodable(line) || !yield(n, v) {
						return
					}
					continue
				}
			}
			before := 0
			for o, fault := range eachObject(line) {
				if fault != nil {
					in.skip(n, "%s", describe(fault, before))
					break
				}
				if before++; !in.countLine() || !in.usageOnly && !in.decodable(o) || !yield(n, parsed(n, o)) {
					return
				}
			}
		}
	}
}

func describe(fault error, before int) string {
	if before > 0 {
		return "after the first object: " + fault.Error()
	}
	return fault.Error()
}

// objects yields the JSON objects of a file that is either one object in any
// layout, with line 0, or JSON Lines. A truncated object is yielded as it is.
func (in *input) objects() iter.Seq2[int, []byte] { return objectsAs(in, rawRecord) }

// objectsAs is objects for what parse makes of an object, as recordsAs.
func objectsAs[T any](in *input, parse func(line int, r *rawjson.Reader, buf []byte) T) iter.Seq2[int, T] {
	if in.stream != nil {
		return recordsAs(in, parse)
	}
	data := bytes.TrimLeft(in.data, " \t\r\n\x00")
	r := rawjson.NewReader(data)
	r.Skip()
	rest := bytes.TrimLeft(data[min(r.Pos(), len(data)):], " \t\r\n\x00")
	lines := r.Err() == nil && len(rest) > 0
	if r.Err() != nil {
		for _, line := range splitLines(data) {
			for _, fault := range eachObject(line) {
				lines = fault == nil
				break
			}
			break
		}
	}
	if lines {
		return recordsAs(in, parse)
	}
	return func(yield func(int, T) bool) { yield(0, parse(0, rawjson.NewReader(data), data)) }
}
