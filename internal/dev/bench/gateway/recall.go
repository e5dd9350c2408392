package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// remembering is furl that records and offers recall in every request.
const remembering = "furl, recording with recall"

// Headers for an answer whose text is sent in pieces. After the text the model
// calls memory_search, if furl offers it.
const (
	headerPieces = "X-Bench-Pieces"
	headerAsked  = "X-Bench-Asked" // of the answer: the model called memory_search
)

// sentField is the field of a text event with the time at which it was sent. It
// is in no format; gateways pass it through.
const sentField = `"x_sent":`

// pieces sends the answer to a request of a step in Anthropic's format, as answer
// does, but the text in pieces, each with its time. If the request offers recall
// and has no result of it yet, the model calls memory_search after the text. The
// answer to the next request then has only the step's own calls: joined, both
// are the step's answer.
func pieces(w http.ResponseWriter, body []byte, step int, id string) {
	call := fmt.Sprintf("toolu_memory_%06d", step)
	m, flush := replyOf(step), http.NewResponseController(w).Flush
	write := func(events ...[]byte) {
		for _, e := range events {
			_, _ = w.Write(e) // the client may have gone
		}
		_ = flush() // the same
	}
	offered, answered := bytes.Contains(body, []byte(`"memory_search"`)), bytes.Contains(body, []byte(call))
	ask := offered && !answered
	if ask {
		w.Header().Set(headerAsked, "1")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set(headerSent, strconv.FormatInt(time.Now().UnixNano(), 10))
	write(event("message_start", `{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":%d,"output_tokens":1}}}`, id, len(body)/4))
	n := 0
	if !answered {
		write(blockEvents(0, `{"type":"thinking","thinking":"","signature":""}`,
			fmt.Sprintf(`{"type":"thinking_delta","thinking":%s}`, quote(m.thinking)), fmt.Sprintf(`{"type":"signature_delta","signature":%q}`, m.signature))...)
		write(event("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`))
		for words := range slices.Chunk(strings.SplitAfter(m.text, " "), 5) {
			time.Sleep(time.Millisecond) // a model takes longer
			write(event("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":%s},%s%d}`, quote(strings.Join(words, "")), sentField, time.Now().UnixNano()))
		}
		write(event("content_block_stop", `{"type":"content_block_stop","index":1}`))
		n = 2
	}
	start, args := fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, callID(step), m.name), string(m.args)
	if ask {
		start, args = fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"memory_search","input":{}}`, call), `{"query":"connection retry timeout"}`
	}
	write(blockEvents(n, start, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, quote(args)))...)
	write(event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":200}}`),
		event("message_stop", `{"type":"message_stop"}`))
}

// readPieces reads such an answer and records the longest delay of a piece.
func (s *sample) readPieces(body io.Reader) error {
	in := bufio.NewReader(body)
	for {
		line, err := in.ReadBytes('\n')
		if _, sent, ok := bytes.Cut(line, []byte(sentField)); ok {
			digits, _, _ := bytes.Cut(sent, []byte("}"))
			if at, bad := strconv.ParseInt(string(digits), 10, 64); bad == nil {
				s.piece = max(s.piece, time.Since(time.Unix(0, at)))
			}
		}
		if bytes.Contains(line, []byte("memory_search")) {
			return errors.New("the client received the call of memory_search")
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// recall measures the conversation with answers in pieces, after which the model
// calls memory_search where furl offers it. Grown is the phase before, without
// such calls.
func (b *bench) recall(kb int, grown *phase, ph *phase, next func() [][]*request) error {
	asking := func() [][]*request {
		round := next()
		round[0][0].pieces = true
		return round
	}
	if err := ph.run(max(b.rounds(kb)/3, 10), asking); err != nil {
		return err
	}
	b.row(kb, "memory searched after a text", ph)
	b.judgeRecall(kb, grown, ph)
	return nil
}

// judgeRecall limits the delay of streams with recall, both where the model could
// have searched and where it did.
func (r *report) judgeRecall(kb int, grown, asking *phase) {
	for i := range asking.by[remembering].samples {
		if s := &asking.by[remembering].samples[i]; !s.asked {
			// Then the figures say nothing about recall.
			r.note("%d KB, %s: the model was not offered memory_search, or furl does not pass the provider's headers through", kb, remembering)
			for _, ph := range []*phase{grown, asking} {
				for j := range ph.by[remembering].samples {
					s := &ph.by[remembering].samples[j]
					s.first, s.relay, s.piece = unmeasured, unmeasured, unmeasured
				}
			}
			break
		}
	}
	if kb <= small {
		r.firsts(kb, remembering, grown)
	}
	r.back(fmt.Sprintf("%d KB: recording with recall, delay of the first streamed byte", kb), remembering, relay, grown)
	r.back(fmt.Sprintf("%d KB: memory searched after a text, delay of the first streamed byte", kb), remembering, relay, asking)
	r.back(fmt.Sprintf("%d KB: memory searched after a text, longest delay of a piece of the text", kb), remembering, piece, asking)
}
