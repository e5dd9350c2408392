package transcript

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// Estimates of the memory that a recording takes while it is read, and later
// as a log. A message of one word takes 770 bytes; a large one takes 2.3
// times its size: its bytes, its texts, and the rounding of allocations. The
// remainder covers what an importer keeps until a conversation is complete.
const (
	perMessage = 768
	perBlock   = 256
	perByte    = 3
	perLine    = 512 // for formats that keep all lines
	perValue   = 384 // of a message while it is being decoded
)

// TooManyRecordsError reports that a recording has more than
// Reader.MaxRecords.
type TooManyRecordsError struct {
	Name  string
	Limit int
}

func (e *TooManyRecordsError) Error() string {
	return fmt.Sprintf("%s: more than %s records, the limit for one recording", e.Name, grouped(e.Limit))
}

// TooMuchMemoryError reports that reading a recording would take more memory
// than Reader.MaxMemory.
type TooMuchMemoryError struct {
	Name  string
	Limit int64 // in bytes
}

func (e *TooMuchMemoryError) Error() string {
	return fmt.Sprintf("%s: reading it as a whole takes more than %d MB of memory, the limit for one recording (about %d MB of messages); furl import and furl replay read sessions of Claude Code and Codex in parts", e.Name, e.Limit>>20, e.Limit/perByte>>20)
}

// grouped formats a number with thousands separators.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bounds are a Reader's limits for one recording.
type bounds struct {
	maxRecords int
	maxMemory  int64
}

// countLine counts a line of JSON Lines, or an element of a list. It reports
// whether reading can continue.
func (in *input) countLine() bool {
	if in.lines++; in.lines > in.maxRecords && in.refused == nil {
		in.refused = &TooManyRecordsError{in.name, in.maxRecords}
	}
	return in.refused == nil
}

// useMemory adds n bytes to the memory in use. It reports whether reading can
// continue.
func (in *input) useMemory(n int64) bool {
	if in.memory += n; in.memory > in.maxMemory && in.refused == nil {
		in.refused = &TooMuchMemoryError{in.name, in.maxMemory}
	}
	return in.refused == nil
}

// decodable reports whether a message or a request is small enough to decode:
// JSON with very many small values takes hundreds of times its size.
func (in *input) decodable(raw []byte) bool {
	if int64(rawjson.CountValues(raw))*perValue <= in.maxMemory-in.memory {
		return in.refused == nil
	}
	return in.useMemory(in.maxMemory + 1)
}

// countMessage counts a message. It reports whether reading can continue.
func (in *input) countMessage(m *furl.Message) bool {
	if in.messages++; in.messages > in.maxRecords && in.refused == nil {
		in.refused = &TooManyRecordsError{in.name, in.maxRecords}
	}
	return in.useMemory(in.memoryOf(m))
}

// uncountMessage undoes countMessage.
func (in *input) uncountMessage(m *furl.Message) {
	in.messages--
	in.memory -= in.memoryOf(m)
}

// memoryOf estimates the memory that a message takes.
func (in *input) memoryOf(m *furl.Message) int64 {
	per := int64(perByte)
	if in.stream == nil {
		per-- // its bytes are those of the file
	}
	return perMessage + int64(len(m.Blocks))*perBlock + int64(m.Bytes())*per
}
