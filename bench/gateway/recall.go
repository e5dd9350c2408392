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

// remembering is furl, recording, with tools of its own in every request.
const remembering = "furl, recording with recall"

// Headers for an answer whose text comes in pieces, and in which the model asks
// furl's memory behind it, if it was offered that.
const (
	headerPieces = "X-Bench-Pieces"
	headerAsked  = "X-Bench-Asked" // of the answer: memory was
)

// sentField holds, in an event of the text, when it was sent. No format knows
// it, and whatever stands in between leaves it alone.
const sentField = `"x_sent":`

// pieces gives the answer to a request of a step in Anthropic's format, as
// answer does, but with the text in pieces that say when they were sent. If the
// request offers recall and does not have what it gives yet, the model asks it
// behind the text, and the rest comes with the next request: joined, both are
// the step's answer. Only the calls that the model makes after that are left to
// it then.
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

// readPieces reads such an answer, and notes how long its pieces were on their
// way.
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
			return errors.New("the client sees what the model asked furl's memory")
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

// recall measures the conversation with answers in pieces, behind which the
// model asks furl's memory where that is offered. Grown is the phase that was
// measured before, without that.
func (b *bench) recall(kb int, grown *phase, ph *phase, next func() [][]*request) error {
	asking := func() [][]*request {
		round := next()
		round[0][0].pieces = true
		return round
	}
	if err := ph.run(max(b.rounds(kb)/3, 10), asking); err != nil {
		return err
	}
	b.row(kb, "memory asked behind a text", ph)
	b.judgeRecall(kb, grown, ph)
	return nil
}

// judgeRecall holds recall to the marks: neither where the model could have
// asked nor where it did may the stream come later.
func (r *report) judgeRecall(kb int, grown, asking *phase) {
	for i := range asking.by[remembering].samples {
		if s := &asking.by[remembering].samples[i]; !s.asked {
			// Then nothing of it says anything about recall.
			r.note("%d KB, %s: the model was not offered memory, or furl's headers do not let its provider's through", kb, remembering)
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
	r.back(fmt.Sprintf("%d KB: recording with recall, the way of the first streamed byte back", kb), remembering, relay, grown)
	r.back(fmt.Sprintf("%d KB: memory asked behind a text, the way of the first streamed byte back", kb), remembering, relay, asking)
	r.back(fmt.Sprintf("%d KB: memory asked behind a text, the longest way of a piece of the text", kb), remembering, piece, asking)
}
