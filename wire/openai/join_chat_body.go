package openai

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Calls implements wire.API.
func (chat) Calls(body []byte, own func(name string) bool) bool { return len(ownCalls(body, own)) > 0 }

// ownCalls returns the indexes of calls of furl's tools in the first choice.
func ownCalls(body []byte, own func(name string) bool) map[int]bool {
	found := make(map[int]bool)
	for i, call := range rawjson.Elements(rawjson.Field(rawjson.Field(firstChoice(body), "message"), "tool_calls")) {
		if own(rawjson.Unquote(rawjson.Field(rawjson.Field(call, "function"), "name"))) {
			found[i] = true
		}
	}
	return found
}

// firstChoice returns the choice with the index 0 of a chat reply.
func firstChoice(body []byte) []byte {
	for i, choice := range rawjson.Elements(rawjson.Field(body, "choices")) {
		n, ok := rawjson.NewReader(rawjson.Field(choice, "index")).Int()
		if n == 0 && (ok || i == 0) {
			return choice
		}
	}
	return nil
}

// JoinBodies implements wire.API.
func (chat) JoinBodies(before []*protocol.Reply, body []byte, own func(name string) bool, used furl.Usage, quiet bool) ([]byte, error) {
	ours := ownCalls(body, own)
	words := ""
	for _, r := range before {
		words = joinWords(words, wordsOf(r))
	}
	if words != "" && rawjson.Unquote(rawjson.Field(rawjson.Field(firstChoice(body), "message"), "content")) != "" {
		words += furl.BetweenWords
	}
	body, err := editChoice(body, words, func(i int) bool { return ours[i] })
	if err != nil {
		return nil, err
	}
	if quiet {
		body = editChoices(body, func(choice []byte) []byte {
			if rawjson.Unquote(rawjson.Field(choice, "finish_reason")) != "tool_calls" {
				return choice
			}
			return rawjson.WithField(choice, "finish_reason", []byte(`"stop"`))
		})
	}
	return setUsage(body, used)
}

// wordsOf returns the text of a reply.
func wordsOf(r *protocol.Reply) (words string) {
	for _, m := range r.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindText {
				words = joinWords(words, b.Text)
			}
		}
	}
	return words
}

// joinWords joins the texts of two replies.
func joinWords(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + furl.BetweenWords + b
}

// DropTools implements wire.API: a reply of Chat Completions does not contain
// tools.
func (chat) DropTools(body []byte, _ func(name string) bool) []byte { return body }
