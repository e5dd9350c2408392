package exchange

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// Some programs ask for a summary of their conversation with a request of its own: one
// message of the user that quotes the conversation, without tools and without an id
// (LangChain.js 1.5, summarizationMiddleware). It is not a conversation.

const (
	// minQuoteSize and maxQuoteSize are the sizes in bytes of requests that may quote a
	// conversation.
	minQuoteSize, maxQuoteSize = 512, 4 << 20
	// minQuotedText is the smallest text in bytes that counts as quoted. minQuotedTexts is
	// how many different ones must be.
	minQuotedText, minQuotedTexts = 24, 3
	// maxQuotable is how many of a session's newest messages are looked for.
	maxQuotable = 128
	// maxQuoteScan is how many bytes are compared in all.
	maxQuoteScan = 256 << 20
)

// Quotes reports whether a request is one message of the user without an id and tools, at
// least half of which are texts of a session in memory.
func (a *Sessions) Quotes(req *protocol.Request, h protocol.Hints) bool {
	if h.Hint != "" || h.Session != "" || definesTools(req) {
		return false
	}
	text, ok := onlyQuestion(req)
	if !ok || len(text) < minQuoteSize {
		return false
	}
	left := maxQuoteScan
	for _, s := range a.InMemory() {
		quoted := false
		a.read(s, func(t *tx) {
			if c := t.Meta().Client; t.Meta().Hint == "" && (c == "" || h.Client == "" || c == h.Client) {
				quoted = isQuoted(t.Log().State(), text, &left)
			}
		})
		if quoted || left < 0 {
			return quoted
		}
	}
	return false
}

func definesTools(req *protocol.Request) bool {
	for i := range req.Preamble {
		if req.Preamble[i].Kind == furl.KindOpaque {
			return true
		}
	}
	return false
}

// onlyQuestion returns the text of a request whose only message, besides instructions, is
// one of the user with texts alone.
func onlyQuestion(req *protocol.Request) (text string, ok bool) {
	var words strings.Builder
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role == furl.RoleSystem || m.Role == furl.RoleDeveloper {
			continue
		}
		if ok || m.Role != furl.RoleUser {
			return "", false
		}
		ok = true
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if b.Kind != furl.KindText || words.Len()+len(b.Text) > maxQuoteSize {
				return "", false
			}
			words.WriteString(b.Text)
		}
	}
	return words.String(), ok
}

// isQuoted reports whether at least half of a text are texts of a conversation.
func isQuoted(st *furl.State, text string, left *int) bool {
	seen, size := make(map[string]bool), 0
	for i := st.Len() - 1; i >= max(0, st.Len()-maxQuotable); i-- {
		_, m := st.Message(i)
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if b.Own || b.Kind != furl.KindText && b.Kind != furl.KindResult || len(b.Text) < minQuotedText || len(b.Text) > len(text) || seen[b.Text] {
				continue
			}
			if *left -= len(text); *left < 0 {
				return false
			}
			if strings.Contains(text, b.Text) {
				seen[b.Text] = true
				size += len(b.Text)
			}
		}
	}
	return len(seen) >= minQuotedTexts && 2*size >= len(text)
}
