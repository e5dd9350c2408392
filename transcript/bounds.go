package transcript

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// What a recording takes in memory while it is read, and afterwards as a log.
// A message of one word takes 770 bytes, one of many bytes 2.3 times those: its
// bytes, its texts, and what an allocation rounds up. The rest is for what a
// format keeps until a conversation is whole.
const (
	perMessage = 768
	perBlock   = 256
	perByte    = 3
	perLine    = 512 // of a format that keeps all lines
	perValue   = 384 // of a message, while it is decoded
)

// TooManyRecordsError says that a recording has more than Reader.MaxRecords.
type TooManyRecordsError struct {
	Name  string
	Limit int
}

func (e *TooManyRecordsError) Error() string {
	return fmt.Sprintf("%s has more than %s records, the limit for one recording: split it into several files", e.Name, grouped(e.Limit))
}

// TooMuchMemoryError says that a recording takes more memory than
// Reader.MaxMemory.
type TooMuchMemoryError struct {
	Name  string
	Limit int64 // in bytes
}

func (e *TooMuchMemoryError) Error() string {
	return fmt.Sprintf("%s takes more than %d MB of memory, the limit for one recording (about %d MB of messages): split it into several files", e.Name, e.Limit>>20, e.Limit/perByte>>20)
}

// grouped writes a number with separators.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bounds are a Reader's for one recording.
type bounds struct {
	maxRecords int
	maxMemory  int64
}

// line counts a line of JSON Lines or an element of a list, and reports whether
// to go on.
func (in *input) line() bool {
	if in.lines++; in.lines > in.maxRecords && in.refused == nil {
		in.refused = &TooManyRecordsError{in.name, in.maxRecords}
	}
	return in.refused == nil
}

// keep notes that so many more bytes of memory are taken, and reports whether to go
// on.
func (in *input) keep(n int64) bool {
	if in.memory += n; in.memory > in.maxMemory && in.refused == nil {
		in.refused = &TooMuchMemoryError{in.name, in.maxMemory}
	}
	return in.refused == nil
}

// decodable reports whether a message, or a request, may be decoded: JSON of
// very many small values takes hundreds of times its size.
func (in *input) decodable(raw []byte) bool {
	if int64(rawjson.CountValues(raw))*perValue <= in.maxMemory-in.memory {
		return in.refused == nil
	}
	return in.keep(in.maxMemory + 1)
}

// said counts a message, and reports whether to go on.
func (in *input) said(m *furl.Message) bool {
	if in.messages++; in.messages > in.maxRecords && in.refused == nil {
		in.refused = &TooManyRecordsError{in.name, in.maxRecords}
	}
	per := int64(perByte)
	if in.stream == nil {
		per-- // its bytes are those of the file
	}
	return in.keep(perMessage + int64(len(m.Blocks))*perBlock + int64(m.Bytes())*per)
}
