package sim

import (
	"fmt"

	"github.com/furlhq/furl"
)

// seal signs an answer: the first call of a step, and without one the last text. Models before
// Gemini 3 sign only after thoughts.
// Source: https://ai.google.dev/gemini-api/docs/thought-signatures
func (gemini) seal(c *call, a *answer) {
	thought := geminiGeneration(c.req.Model) >= 3
	first, last := -1, -1
	for i := range a.Blocks {
		switch b := &a.Blocks[i]; b.Kind {
		case furl.KindThinking:
			thought = true
		case furl.KindText:
			last = i
		case furl.KindCall:
			if first < 0 {
				first = i
			}
		}
	}
	if !thought {
		return
	}
	if first >= 0 {
		last = first
	}
	if last < 0 {
		return
	}
	s := seal{model: modelMark(c.model.ID), reply: c.replyMark()}
	a.Signed, a.Signature = last, s.sign("gemini", a.Blocks[last].Name)
}

var geminiStops = map[string]string{
	"max_tokens": "MAX_TOKENS", "model_context_window_exceeded": "MAX_TOKENS", "refusal": "SAFETY",
}

func geminiStop(stop string) string {
	if s, ok := geminiStops[stop]; ok {
		return s
	}
	return "STOP"
}

// geminiPart returns a part of an answer with a text in place of its own, and a signature.
// Calls have an id on the Gemini API from Gemini 3 on.
func (c *call) geminiPart(b *furl.Block, text, signature string) []byte {
	var p []byte
	switch b.Kind {
	case furl.KindThinking:
		p = fmt.Appendf(nil, `{"text":%s,"thought":true`, str(text))
	case furl.KindCall:
		p = append(p, `{"functionCall":{`...)
		p = fmt.Appendf(p, `"name":%s,"args":%s`, str(b.Name), compact(b.Args))
		if geminiGeneration(c.req.Model) >= 3 && !c.onVertex() {
			p = fmt.Appendf(p, `,"id":%s`, str(b.ID))
		}
		p = append(p, '}')
	default:
		p = fmt.Appendf(nil, `{"text":%s`, str(text))
	}
	if signature != "" {
		p = fmt.Appendf(p, `,"thoughtSignature":%s`, str(signature))
	}
	return append(p, '}')
}

// geminiPiece returns a response, or a piece of a streamed one. A piece without parts or
// without an end has none of them.
func (c *call) geminiPiece(a *answer, parts [][]byte, stop string, usage []byte) []byte {
	out := append([]byte(nil), `{"candidates":[{"content":{"parts":[`...)
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, p...)
	}
	out = append(out, `],"role":"model"}`...)
	if stop != "" {
		out = fmt.Appendf(out, `,"finishReason":%q`, stop)
	}
	return fmt.Appendf(out, `,"index":0}],"usageMetadata":%s,"modelVersion":%s,"responseId":%s}`, usage, str(c.req.Model), str(a.ID))
}

// geminiUsage returns the usage when so many tokens of the output were sent. The prompt
// includes what was read from the cache; the output, without the thoughts, is candidates.
func (c *call) geminiUsage(u furl.Usage, output int) []byte {
	prompt := u.Prompt()
	out := fmt.Appendf(nil, `{"promptTokenCount":%d`, prompt)
	if output > 0 {
		out = fmt.Appendf(out, `,"candidatesTokenCount":%d`, output)
	}
	out = fmt.Appendf(out, `,"totalTokenCount":%d`, prompt+output+u.Reasoning)
	if u.CacheRead > 0 {
		out = fmt.Appendf(out, `,"cachedContentTokenCount":%d`, u.CacheRead)
	}
	out = fmt.Appendf(out, `,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]`, prompt)
	if u.CacheRead > 0 {
		out = fmt.Appendf(out, `,"cacheTokensDetails":[{"modality":"TEXT","tokenCount":%d}]`, u.CacheRead)
	}
	if u.Reasoning > 0 {
		out = fmt.Appendf(out, `,"thoughtsTokenCount":%d`, u.Reasoning)
	}
	if c.onVertex() {
		out = append(out, `,"trafficType":"ON_DEMAND"`...)
	}
	return append(out, '}')
}

func (gemini) whole(c *call, a *answer) []byte {
	var parts [][]byte
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if b.Kind == furl.KindThinking && c.facts.omitted {
			continue
		}
		parts = append(parts, c.geminiPart(b, b.Text, a.signatureOf(i)))
	}
	if parts == nil {
		parts = append(parts, c.geminiPart(&furl.Block{}, "", ""))
	}
	return c.geminiPiece(a, parts, geminiStop(a.Stop), c.geminiUsage(a.Usage, a.Usage.Output-a.Usage.Reasoning))
}

// events returns a piece for each piece of text and for each run of calls. The usage is in
// all of them, the reason of the end in the last. The signature of a text comes at the end, on
// an empty text.
func (gemini) events(c *call, a *answer) []event {
	var pieces [][][]byte
	for i := range a.Blocks {
		b := &a.Blocks[i]
		signature := a.signatureOf(i)
		if b.Kind == furl.KindCall {
			part := c.geminiPart(b, "", signature)
			if n := len(pieces); i > 0 && a.Blocks[i-1].Kind == furl.KindCall && !c.interleaves() {
				pieces[n-1] = append(pieces[n-1], part)
			} else {
				pieces = append(pieces, [][]byte{part})
			}
			continue
		}
		if b.Kind == furl.KindThinking && c.facts.omitted {
			continue
		}
		for _, text := range c.deltas(b.Text) {
			pieces = append(pieces, [][]byte{c.geminiPart(b, text, "")})
		}
		if signature != "" {
			pieces = append(pieces, [][]byte{c.geminiPart(&furl.Block{}, "", signature)})
		}
	}
	if len(pieces) == 0 {
		pieces = append(pieces, [][]byte{c.geminiPart(&furl.Block{}, "", "")})
	}
	var out []event
	total := a.Usage.Output - a.Usage.Reasoning
	for i, parts := range pieces {
		stop := ""
		if i == len(pieces)-1 {
			stop = geminiStop(a.Stop)
		}
		data := c.geminiPiece(a, parts, stop, c.geminiUsage(a.Usage, total*(i+1)/len(pieces)))
		out = append(out, event{data: data})
	}
	return out
}

// signatureOf returns the signature of a block, "" if it has none.
func (a *answer) signatureOf(block int) string {
	if a.Signature != "" && a.Signed == block {
		return a.Signature
	}
	return ""
}
