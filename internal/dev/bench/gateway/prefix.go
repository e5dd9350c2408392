package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/furlhq/furl"
)

// prefixes lets sessions grow in a window that is too small for them, and
// compares what the upstream gets with what it got before: between two
// reductions all of it must be the beginning of the next, cache marks aside. In
// the middle the gateway is restarted.
func (b *bench) prefixes() error {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, turns := range b.turns {
			if err := b.prefix(format, turns); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) prefix(format furl.Format, turns int) error {
	p, err := b.gateway(fmt.Sprintf("prefix-%s-%d", format, turns), append([]string{"--window", "30k"}, b.args...)...)
	if err != nil {
		return err
	}
	defer func() { _ = p.stop() }()
	t := newTarget("prefix", p)
	h := newHistory(format, uint64(turns), 57<<10, models[format])
	var before []json.RawMessage
	planned, lost := 0, 0
	for turn := range turns {
		if turn > 0 {
			h.grow()
		}
		if turn == turns/2 {
			if err := p.stop(); err != nil {
				return err
			}
			if err := p.start(b.ctx, b.furl, b.upstream.url); err != nil {
				return err
			}
		}
		name := "prefix" + strconv.Itoa(turn)
		s, err := t.send(&request{format: format, body: h.body(true), stream: true, step: h.step, keep: name})
		if err != nil {
			return err
		}
		got, err := kept(b.upstream, name)
		if err != nil {
			return err
		}
		list, err := listOf(got)
		if err != nil {
			return err
		}
		switch {
		case s.reductions > 0:
			planned++
		case !begins(list, before):
			lost++
		}
		before = list
	}
	b.mark(lost == 0, fmt.Sprintf("%s: %d requests, a restart halfway, %d planned cache breaks: requests that lose their prefix", format, turns, planned), "0", "%d", lost)
	return nil
}

// listOf gives the messages or items of a body, without cache marks.
func listOf(body []byte) ([]json.RawMessage, error) {
	var both struct{ Messages, Input []json.RawMessage }
	if err := json.Unmarshal(body, &both); err != nil {
		return nil, err
	}
	list := append(both.Messages, both.Input...)
	for i := range list {
		list[i] = bytes.ReplaceAll(list[i], []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
	}
	return list, nil
}

// begins reports whether a list begins with another, byte for byte.
func begins(list, with []json.RawMessage) bool {
	if len(list) < len(with) {
		return false
	}
	for i := range with {
		if !bytes.Equal(list[i], with[i]) {
			return false
		}
	}
	return true
}
