package rebuild

import (
	"github.com/furlhq/furl"
)

// What furl shows in place of something is in the reduction's record already.
// A changed element is therefore a patch of the texts that a reduction shows for
// its message, followed by the message itself.

// appendShown appends the texts that a reduction shows for a message, in the order of
// its items and escaped as in JSON; for message 0, all that it shows.
func (l Records) appendShown(out []byte, reduction, message furl.Seq) []byte {
	if reduction == 0 || reduction > furl.Seq(len(l)) {
		return out
	}
	red, ok := l[reduction-1].Body.(*furl.Reduction)
	if !ok {
		return out
	}
	for i := range red.Items {
		item := &red.Items[i]
		switch show := item.Show.(type) {
		case furl.In:
			if message == 0 || covers(item.Spans, message) {
				out = appendEscaped(out, show.Text)
			}
		case furl.Mark:
			if message != 0 {
				continue
			}
			for _, m := range show.Messages {
				for k := range m.Blocks {
					out = appendEscaped(out, m.Blocks[k].Text)
				}
			}
		}
	}
	return out
}

func covers(spans []furl.Span, message furl.Seq) bool {
	for _, s := range spans {
		if s.First.Msg <= message && message <= s.Last.Msg {
			return true
		}
	}
	return false
}

// appendEscaped appends a text as it is in a JSON string.
func appendEscaped(out []byte, text string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			out = append(out, '\\', b)
		case b == '\n':
			out = append(out, '\\', 'n')
		case b == '\r':
			out = append(out, '\\', 'r')
		case b == '\t':
			out = append(out, '\\', 't')
		case b < ' ':
			out = append(out, '\\', 'u', '0', '0', digits[b>>4], digits[b&15])
		default:
			out = append(out, b)
		}
	}
	return out
}
