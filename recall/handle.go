package recall

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Handle names a block or a message for people and models: "furl:12.3" is
// block 3 of message 12, "furl:12" the message, and "furl:ID/12.3" the block in
// the session ID. Placeholders and search hits print handles.
type Handle struct {
	Session furl.SessionID // "": the current session
	Msg     furl.Seq
	Block   int // -1: the whole message
}

const handlePrefix = "furl:"

// HandleOf returns the handle of a block in the current session.
func HandleOf(pos furl.Pos) Handle { return Handle{Msg: pos.Msg, Block: pos.Block} }

// Pos returns the position of the block; for a message, of its first block.
func (h Handle) Pos() furl.Pos { return furl.Pos{Msg: h.Msg, Block: max(h.Block, 0)} }

// String returns the handle in the form that ParseHandle reads.
func (h Handle) String() string {
	s := handlePrefix
	if h.Session != "" {
		s += string(h.Session) + "/"
	}
	s += strconv.FormatUint(uint64(h.Msg), 10)
	if h.Block >= 0 {
		s += "." + strconv.Itoa(h.Block)
	}
	return s
}

// ParseHandle parses a handle. It accepts what models make of it when they copy
// it: without "furl:", or in spaces, brackets and quotes.
func ParseHandle(text string) (Handle, error) {
	s := strings.Trim(text, " .\t\r\n[](){}<>\"'`,;")
	s = strings.TrimPrefix(s, handlePrefix)
	h := Handle{Block: -1}
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		h.Session, s = furl.SessionID(s[:i]), s[i+1:]
		if !storage.ValidID(h.Session) {
			return Handle{}, handleError(text)
		}
	}
	msg, block, hasBlock := strings.Cut(s, ".")
	n, err := strconv.ParseUint(msg, 10, 63)
	if err != nil || n == 0 || msg[0] == '+' {
		return Handle{}, handleError(text)
	}
	h.Msg = furl.Seq(n)
	if hasBlock {
		n, err := strconv.ParseUint(block, 10, 31)
		if err != nil || block[0] == '+' {
			return Handle{}, handleError(text)
		}
		h.Block = int(n)
	}
	return h, nil
}

func handleError(text string) error {
	return fmt.Errorf("invalid handle %.80q: expected a form such as furl:12.3, for block 3 of message 12", text)
}
