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

// splitObjects gives the JSON objects of a line: one, or several where the
// newline between two was lost. A line with anything else on it gives none.
func splitObjects(line []byte) [][]byte {
	objs, _ := cutObjects(line)
	return objs
}

// cutObjects gives the JSON objects that a line begins with, and the fault
// that ends them, nil at the end of the line.
func cutObjects(line []byte) (objs [][]byte, fault error) {
	for len(line) > 0 {
		r := rawjson.NewReader(line)
		if r.Kind() != '{' {
			return objs, &rawjson.Error{Offset: 0, Text: "no JSON object"}
		}
		o := r.Raw()
		if err := r.Err(); err != nil {
			return objs, err
		}
		objs = append(objs, o)
		line = bytes.Trim(line[r.Pos():], " \t\x00")
	}
	return objs, nil
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
			objs, fault := cutObjects(line)
			for _, o := range objs {
				if !in.line() || !in.decodable(o) || !yield(n, o) {
					return
				}
			}
			if fault != nil {
				in.skip(n, "%s", describe(fault, len(objs)))
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
			lines = len(splitObjects(line)) > 0
			break
		}
	}
	if lines {
		return in.records()
	}
	return func(yield func(int, []byte) bool) { yield(0, data) }
}
