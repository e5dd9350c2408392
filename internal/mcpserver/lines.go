package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines is the input of a client without the lines that are not messages. The SDK ends
// the connection at such a line; here the client gets an error response, as JSON-RPC
// requires it.
type lines struct {
	in      io.Closer
	from    *bufio.Reader
	out     io.Writer
	batches bool   // of a revision that has batches
	rest    []byte // of the line that is being read
	line    []byte
}

func newLines(in io.ReadCloser, out io.Writer) *lines {
	return &lines{in: in, from: bufio.NewReaderSize(in, 64<<10), out: out, batches: true}
}

func (l *lines) Close() error { return l.in.Close() }

// Read returns bytes of one line at most.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		long, err := l.next()
		if err != nil && (len(l.line) == 0 || !errors.Is(err, io.EOF)) {
			return 0, err
		}
		if refusal := l.check(long); refusal != nil {
			if _, err := l.out.Write(refusal); err != nil {
				return 0, err
			}
			continue
		}
		l.rest = l.line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line that is not empty. long reports that it is too long; the rest of it
// was skipped.
func (l *lines) next() (long bool, err error) {
	l.line = l.line[:0]
	for {
		part, err := l.from.ReadSlice('\n')
		if long = long || len(l.line)+len(part) > maxLine; !long {
			l.line = append(l.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil && !long && len(bytes.TrimSpace(l.line)) == 0:
			l.line = l.line[:0]
		case err == nil || long || len(bytes.TrimSpace(l.line)) > 0:
			return long, err
		default:
			l.line = l.line[:0]
			return false, err
		}
	}
}

// check returns the response to a line that is not a message, nil if it is one.
func (l *lines) check(long bool) []byte {
	const parse, invalid = jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest
	if long {
		return refusalOf(nil, invalid, "message is longer than 1 MB")
	}
	if !json.Valid(l.line) {
		return refusalOf(nil, parse, "line is not JSON: send each message on one line")
	}
	text := bytes.TrimSpace(l.line)
	if text[0] != '[' {
		return l.checkOne(text)
	}
	var batch []json.RawMessage
	switch err := json.Unmarshal(text, &batch); {
	case err != nil:
		return refusalOf(nil, parse, "line is not JSON: send each message on one line")
	case !l.batches:
		return refusalOf(nil, invalid, "batches are not supported since revision 2025-06-18: send each message on one line")
	case len(batch) == 0:
		return refusalOf(nil, invalid, "empty batch")
	}
	for _, one := range batch {
		if refusal := l.checkOne(one); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (l *lines) checkOne(text []byte) []byte {
	message, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return refusalOf(nil, jsonrpc.CodeInvalidRequest, "line is not a JSON-RPC 2.0 message")
	}
	if id := inexactID(text); id != nil {
		return refusalOf(id, jsonrpc.CodeInvalidRequest, inexactReason)
	}
	if req, ok := message.(*jsonrpc.Request); ok && req.Method == "initialize" {
		var params struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		l.batches = json.Unmarshal(req.Params, &params) == nil && (params.ProtocolVersion == "2025-03-26" || params.ProtocolVersion == "2024-11-05")
	}
	return nil
}

// inexactReason is why a request with an inexact id is refused.
const inexactReason = "the id is a number that is no integer below 2^53: use a smaller number, or a string"

// inexactID returns the id of a message if it is a number that the SDK would answer with
// another one, because it keeps numbers as a float64 that it makes an int64. Otherwise nil.
func inexactID(text []byte) json.RawMessage {
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(text, &message); err != nil || len(message.ID) == 0 || message.ID[0] != '-' && (message.ID[0] < '0' || message.ID[0] > '9') {
		return nil
	}
	const exact = 1 << 53
	if n, err := strconv.ParseFloat(string(message.ID), 64); err == nil && n == math.Trunc(n) && math.Abs(n) < exact {
		return nil
	}
	return message.ID
}

// refusalOf returns the response to a message, whose id is nil if it is unknown.
func refusalOf(id json.RawMessage, code int, text string) []byte {
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}}) // no other types
	return append(data, '\n')
}

// lockedWriter is an output that several goroutines write whole messages to.
type lockedWriter struct {
	mu sync.Mutex
	io.WriteCloser
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
