package onereply

import (
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// ownIn gives the places of the calls of recall in an answer that is no stream:
// among its blocks, the calls of its first choice, or its items.
func (m *Merger) ownIn(body []byte) map[int]bool {
	list, typ := rawjson.Field(body, "content"), "tool_use"
	switch m.format {
	case furl.FormatChat:
		list, typ = rawjson.Field(rawjson.Field(firstChoice(body), "message"), "tool_calls"), ""
	case furl.FormatResponses:
		list, typ = rawjson.Field(body, "output"), "function_call"
	}
	var own map[int]bool
	for i, elem := range elements(list) {
		named := elem
		if m.format == furl.FormatChat {
			named = rawjson.Field(elem, "function")
		}
		if typ != "" && rawjson.Unquote(rawjson.Field(elem, "type")) != typ || !m.own(rawjson.Unquote(rawjson.Field(named, "name"))) {
			continue
		}
		if own == nil {
			own = make(map[int]bool)
		}
		own[i] = true
	}
	return own
}

// firstChoice is the choice with the index 0 of a chat reply.
func firstChoice(body []byte) []byte {
	for i, choice := range elements(rawjson.Field(body, "choices")) {
		n, ok := rawjson.NewReader(rawjson.Field(choice, "index")).Int()
		if n == 0 && (ok || i == 0) {
			return choice
		}
	}
	return nil
}

// joinBodies makes one answer of several: the last one's, with what was said
// before in front, without calls of recall, and with the usage of all.
func joinBodies(format furl.Format, before []*furl.Reply, body []byte, own map[int]bool, used furl.Usage, quiet bool) ([]byte, error) {
	drop := func(i int) bool { return own[i] }
	var err error
	switch format {
	case furl.FormatAnthropic:
		var blocks []json.RawMessage
		for _, r := range before {
			blocks = append(blocks, theirBlocks(r)...)
		}
		if body, err = anthropic.EditContent(body, blocks, drop); err != nil {
			return nil, err
		}
		if quiet && rawjson.Unquote(rawjson.Field(body, "stop_reason")) == "tool_use" {
			body = rawjson.WithField(body, "stop_reason", []byte(`"end_turn"`))
		}
		return anthropic.SetUsage(body, used)
	case furl.FormatChat:
		words := ""
		for _, r := range before {
			words = joinWords(words, wordsOf(r))
		}
		if words != "" && rawjson.Unquote(rawjson.Field(rawjson.Field(firstChoice(body), "message"), "content")) != "" {
			words += furl.BetweenWords
		}
		if body, err = openai.EditChoice(body, words, drop); err != nil {
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
		return openai.SetUsage(body, used)
	case furl.FormatResponses:
		var items []json.RawMessage
		for _, r := range before {
			for _, m := range r.Messages {
				if !m.HasOwn() {
					items = append(items, m.Raw)
				}
			}
		}
		if body, err = openai.EditOutput(body, items, drop); err != nil {
			return nil, err
		}
		return openai.SetUsage(body, used)
	}
	return nil, fmt.Errorf("no wire format %q", format)
}

// theirBlocks are the blocks of a reply that the client gets.
func theirBlocks(r *furl.Reply) (blocks []json.RawMessage) {
	for _, m := range r.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; !b.Own && b.Start < b.End && b.End <= len(m.Raw) {
				blocks = append(blocks, json.RawMessage(m.Raw[b.Start:b.End]))
			}
		}
	}
	return blocks
}

// wordsOf are the words of a reply.
func wordsOf(r *furl.Reply) (words string) {
	for _, m := range r.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindText {
				words = joinWords(words, b.Text)
			}
		}
	}
	return words
}

// joinWords puts the words of two answers of Chat Completions into one text.
func joinWords(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + furl.BetweenWords + b
}
