package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
)

// bytes compares the body that the upstream receives with the one sent.
func (b *bench) bytes() error {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, kb := range b.sizes {
			if err := b.fidelity(format, kb); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) fidelity(format furl.Format, kb int) error {
	h := newHistory(format, 7, kb<<10, models[format])
	send := func(name string, args ...string) (sent, got []byte, err error) {
		p, err := b.gateway(name, args...)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = p.stop() }()
		r := &request{format: format, body: h.body(true), stream: true, step: h.step, keep: "body"}
		if _, err := newTarget(name, p).send(r); err != nil {
			return nil, nil, err
		}
		got, err = kept(b.upstream, "body")
		return r.body, got, err
	}
	name := fmt.Sprintf("bytes-%s-%d", format, kb)
	// auto would hide what pays even in a window this large.
	sent, got, err := send(name+"-large", append([]string{"--policy", "compaction", "--window", "4000k"}, b.args...)...)
	if err != nil {
		return err
	}
	b.mark(sha256.Sum256(sent) == sha256.Sum256(got), fmt.Sprintf("%d KB, %s: nothing to hide, body forwarded unchanged", kb, format), "yes", "%t", bytes.Equal(sent, got))
	sent, got, err = send(name+"-small", append([]string{"--window", strconv.Itoa(window(kb))}, b.args...)...)
	if err != nil {
		return err
	}
	d, err := compare(h, sent, got)
	if err != nil {
		return err
	}
	b.mark(d.changed+d.hidden > 0 && len(d.wrong) == 0, fmt.Sprintf("%d KB, %s: reducing, only reduced blocks differ", kb, format), "yes",
		"%d of %d elements changed, %d hidden, %d new; elsewhere changed: %d%s", d.changed, d.all, d.hidden, d.added, len(d.wrong), d.first())
	return nil
}

// difference is what became of a body's list.
type difference struct {
	all, changed, hidden, added int
	wrong                       []string
}

func (d *difference) first() string {
	if len(d.wrong) == 0 {
		return ""
	}
	return ", such as " + d.wrong[0]
}

// may are the fields in which a reduction may change an element or a block.
var may = []string{"content", "input", "output", "arguments", "tool_calls", "thinking"}

func compare(h *history, sent, got []byte) (*difference, error) {
	d := &difference{}
	if !bytes.HasPrefix(got, h.head) || !bytes.HasSuffix(got, []byte(`],"stream":true}`)) {
		d.wrong = append(d.wrong, "bytes outside the list")
	}
	was, err := listOf(sent)
	if err != nil {
		return nil, err
	}
	is, err := listOf(got)
	if err != nil {
		return nil, err
	}
	d.all = len(was)
	at := 0
	for _, item := range is {
		i := slices.IndexFunc(was[at:], func(w json.RawMessage) bool { return bytes.Equal(w, item) || key(w) != "" && key(w) == key(item) })
		if i < 0 {
			d.added++
			continue
		}
		d.hidden += i
		at += i + 1
		if !bytes.Equal(was[at-1], item) {
			d.changed++
			d.element(was[at-1], item)
		}
	}
	d.hidden += len(was) - at
	return d, nil
}

// key tells an element by the ids in it.
func key(item json.RawMessage) string {
	var e struct {
		Role, ID   string
		CallID     string `json:"call_id"`
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct{ ID string }
		Content    json.RawMessage
	}
	if json.Unmarshal(item, &e) != nil {
		return ""
	}
	var blocks []struct {
		ID        string
		ToolUseID string `json:"tool_use_id"`
	}
	_ = json.Unmarshal(e.Content, &blocks) // text has none
	var k strings.Builder
	k.WriteString(e.ID + e.CallID + e.ToolCallID)
	for _, c := range e.ToolCalls {
		k.WriteString(c.ID)
	}
	for _, b := range blocks {
		k.WriteString(b.ID + b.ToolUseID)
	}
	if k.String() == "" {
		return ""
	}
	return e.Role + " " + k.String()
}

// element checks that two forms of one element differ where they may.
func (d *difference) element(was, is json.RawMessage) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(was, &x) != nil || json.Unmarshal(is, &y) != nil {
		d.wrong = append(d.wrong, string(is[:min(len(is), 80)]))
		return
	}
	var xs, ys []json.RawMessage
	if json.Unmarshal(x["content"], &xs) == nil && json.Unmarshal(y["content"], &ys) == nil && len(xs) >= len(ys) && x["tool_use_id"] == nil {
		at := 0
		for _, block := range ys {
			for at < len(xs) && kind(xs[at]) != kind(block) {
				at++ // thinking that is gone
			}
			if at == len(xs) {
				d.wrong = append(d.wrong, string(block[:min(len(block), 80)]))
				return
			}
			if !bytes.Equal(xs[at], block) {
				d.element(xs[at], block)
			}
			at++
		}
	}
	for name := range x {
		if !slices.Contains(may, name) && !bytes.Equal(x[name], y[name]) {
			d.wrong = append(d.wrong, fmt.Sprintf("%s: %.60s is %.60s", name, x[name], y[name]))
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			d.wrong = append(d.wrong, "new field "+name)
		}
	}
}

func kind(block json.RawMessage) string {
	var b struct{ Type, ID string }
	_ = json.Unmarshal(block, &b) // no object has no type
	return b.Type + b.ID
}
