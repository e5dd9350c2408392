package anthropic

import (
	"bytes"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// billingHeader starts the line in which Claude Code tells Anthropic what to bill. It is
// the first system block, and changes with each request.
const billingHeader = "x-anthropic-billing-header:"

// withoutBilling returns the text of a system block without the values of a billing
// line. Anthropic caches a prompt as if the line were constant, so it does not tell
// requests apart.
func withoutBilling(text string) string {
	values, ok := strings.CutPrefix(text, billingHeader)
	if !ok {
		return text
	}
	end := strings.IndexByte(values, '\n')
	if end < 0 {
		return billingHeader
	}
	return billingHeader + values[end:]
}

// BillingLine implements wire.API.
func (codec) BillingLine(body []byte) string {
	return rawjson.Unquote(quoted(billingLine(body).Of(body)))
}

// WithBillingLine implements wire.API.
func (codec) WithBillingLine(body []byte, line string) ([]byte, bool) {
	span := billingLine(body)
	if span.Len() == 0 || !strings.HasPrefix(line, billingHeader) || strings.Contains(line, "\n") || rawjson.Unquote(quoted(span.Of(body))) == line {
		return nil, false
	}
	text := rawjson.AppendString(nil, line)
	return rawjson.Splice(body, []rawjson.Edit{{Span: span, New: text[1 : len(text)-1]}}), true
}

// quoted returns the JSON string with this text between its quotes.
func quoted(inside []byte) []byte {
	return append(append([]byte{'"'}, inside...), '"')
}

// billingLine returns the position of the billing line in a request, between the quotes
// of its JSON string. It is empty if there is none.
func billingLine(body []byte) (line rawjson.Span) {
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return line
	}
	for key := range r.Fields() {
		switch kind := r.Kind(); {
		case string(key) != "system" || line.Len() > 0:
			r.Skip()
		case kind == '"':
			line = billingLineIn(body, r.Skip())
		case kind == '[':
			for range r.Elements() {
				if r.Kind() != '{' {
					r.Skip()
					continue
				}
				var typ string
				var text rawjson.Span
				for key := range r.Fields() {
					switch string(key) {
					case "type":
						typ, _ = r.String()
					case "text":
						if text = (rawjson.Span{}); r.Kind() == '"' {
							text = r.Skip()
						}
					}
				}
				if typ == "text" && text.Len() > 0 && line.Len() == 0 {
					line = billingLineIn(body, text)
				}
			}
		default:
			r.Skip()
		}
	}
	if r.End() != nil {
		return rawjson.Span{}
	}
	return line
}

// billingLineIn returns the position of the billing line that a JSON string starts with.
func billingLineIn(body []byte, text rawjson.Span) rawjson.Span {
	start := text.Start + 1
	inside := body[start : text.End-1]
	if !bytes.HasPrefix(inside, []byte(billingHeader)) {
		return rawjson.Span{}
	}
	end := len(billingHeader)
	for end < len(inside) {
		if inside[end] != '\\' {
			end++
			continue
		}
		escape := inside[end:] // the string is valid, so this is a whole escape
		if escape[1] == 'n' || len(escape) >= 6 && strings.EqualFold(string(escape[:6]), `\u000a`) {
			break
		}
		end += 2
	}
	return rawjson.Span{Start: start, End: start + end}
}
