package transcript

import (
	"bytes"
	"iter"

	"github.com/furlhq/furl/internal/rawjson"
)

// splitLines yields the lines of data with their 1-based numbers, without
// line ends and without the white space, byte order marks and NULs (left by a
// crash or a full disk) around them. Empty lines are passed over.
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

// trimLine cuts off what splitLines leaves out around a line.
func trimLine(line []byte) []byte {
	line = bytes.Trim(line, " \t\r\n\x00")
	return bytes.Trim(bytes.TrimPrefix(line, utf8BOM), " \t\r\n\x00")
}

// eachObject yields the JSON objects that a line begins with: one, or several
// where the newline between two was lost. What ends them before the end of the
// line is yielded last, as an error.
func eachObject(line []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for len(line) > 0 {
			r := rawjson.NewReader(line)
			if r.Kind() != '{' {
				yield(nil, &rawjson.Error{Offset: 0, Text: "no JSON object"})
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

// records yields the JSON objects of JSON Lines with the line each stands on.
// What is broken is skipped and reported: lines beyond the limit, lines that
// are no JSON object, the torn rest of a line.
func (in *input) records() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for n, line := range in.eachLine() {
			if len(line) > in.maxLine {
				in.skip(n, "the line has %d bytes, more than %d", len(line), in.maxLine)
				continue
			}
			before := 0
			for o, fault := range eachObject(line) {
				if fault != nil {
					in.skip(n, "%s", describe(fault, before))
					break
				}
				if before++; !in.line() || !in.decodable(o) || !yield(n, o) {
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

// objects yields the JSON objects of a file that may be one object, however it
// is laid out, or JSON Lines; the one object has line 0. If it breaks off, it
// is yielded as it is.
func (in *input) objects() iter.Seq2[int, []byte] {
	if in.stream != nil {
		return in.records()
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
		return in.records()
	}
	return func(yield func(int, []byte) bool) { yield(0, data) }
}
