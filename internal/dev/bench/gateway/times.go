package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/furlhq/furl"
)

// models are the models of the requests. Their context windows hold the bodies
// unless the gateway gets a smaller one by --window.
var models = map[furl.Format]string{
	furl.FormatAnthropic: "claude-sonnet-4-5",
	furl.FormatChat:      "gpt-5.4",
	furl.FormatResponses: "gpt-5.4",
}

// The targets.
const (
	direct   = "direct"
	proxied  = "proxy"
	bypassed = "furl, bypassed"
	passing  = "furl, recording"
	reducing = "furl, reducing"
)

// ways are the targets of one body size: two baselines, and the gateways.
type ways struct {
	targets []*target
	procs   []*process // the gateways
}

func (b *bench) ways(name string, kilobytes int, recall bool) (*ways, error) {
	w := &ways{targets: []*target{newTarget(direct, b.upstream), newTarget(proxied, b.proxy)}}
	type named struct {
		name string
		args []string
	}
	gateways := []named{
		{bypassed, []string{"--policy", "none"}},
		{passing, []string{"--policy", "none"}},
		{reducing, append([]string{"--policy", "auto", "--window", strconv.Itoa(window(kilobytes))}, b.args...)},
	}
	if recall {
		gateways = append(gateways, named{remembering, []string{"--policy", "none", "--recall"}})
	}
	for _, g := range gateways {
		p, err := b.gateway(name+"-"+strconv.Itoa(len(w.procs)), g.args...)
		if err != nil {
			w.stop()
			return nil, err
		}
		w.procs = append(w.procs, p)
		t := newTarget(g.name, p)
		t.bypass = g.name == bypassed
		w.targets = append(w.targets, t)
	}
	return w, nil
}

// window is a context window that a body of this size exceeds.
func window(kilobytes int) int { return kilobytes << 10 / 4 * 7 / 10 }

func (w *ways) stop() {
	for _, p := range w.procs {
		_ = p.stop()
	}
}

// without stops a gateway that is not part of the remaining phases.
func (w *ways) without(name string) error {
	i := slices.IndexFunc(w.targets, func(t *target) bool { return t.name == name })
	t := w.targets[i]
	w.targets = slices.Delete(w.targets, i, i+1)
	return t.p.stop()
}

func (w *ways) target(name string) *target { return named(w.targets, name) }

func named(targets []*target, name string) *target {
	for _, t := range targets {
		if t.name == name {
			return t
		}
	}
	return nil
}

// times measures all body sizes in Anthropic's format.
func (b *bench) times() error {
	for _, kb := range b.sizes {
		w, err := b.ways(fmt.Sprint("time-", kb), kb, true)
		if err == nil {
			err = b.size(w, kb)
			w.stop()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rounds is the number of requests for a body size.
func (b *bench) rounds(kilobytes int) int {
	switch {
	case kilobytes > 1000:
		return max(b.n/3, 10)
	case kilobytes > 200:
		return max(b.n/2, 10)
	}
	return b.n
}

// one is a round of one request on one connection.
func one(h *history, stream bool) [][]*request {
	return [][]*request{{{format: h.format, body: h.body(stream), stream: stream, step: h.step}}}
}

// stepBytes is about how many bytes a step adds to a conversation.
const stepBytes = 3 << 10

// size measures one size of body.
func (b *bench) size(w *ways, kb int) error {
	n, format := b.rounds(kb), furl.FormatAnthropic
	ph := &phase{targets: w.targets}
	fresh := func(seed uint64) *history { return newHistory(format, seed, kb<<10, models[format]) }

	// Cold: sessions that are new to the process and the store.
	seed := uint64(1000)
	warm := fresh(seed)
	if err := ph.run(1, func() [][]*request { return one(warm, true) }); err != nil {
		return err
	}
	b.row(kb, "first of the process", ph)

	// Warm: a conversation grows by a step with each request. There are enough
	// of them, by turns, that none becomes twice as long.
	talks := []*history{warm}
	for len(talks)*kb<<10 < n*stepBytes {
		seed++
		talk := fresh(seed)
		for _, t := range w.targets {
			if _, err := t.sendAll(one(talk, true)); err != nil {
				return err
			}
		}
		talks = append(talks, talk)
	}
	turn := 0
	grow := func(stream bool) func() [][]*request {
		return func() [][]*request {
			turn++
			talk := talks[turn%len(talks)]
			talk.grow()
			return one(talk, stream)
		}
	}
	if err := ph.run(n, grow(true)); err != nil {
		return err
	}
	b.row(kb, "a step more", ph)
	b.judge(kb, ph)
	grown := *ph
	if err := b.recall(kb, &grown, ph, grow(true)); err != nil {
		return err
	}
	if err := w.without(remembering); err != nil {
		return err
	}
	ph.targets = w.targets
	if err := ph.run(max(n/2, 10), grow(false)); err != nil {
		return err
	}
	b.row(kb, "a step more, not streamed", ph)
	if err := ph.run(max(n/4, 10), func() [][]*request { return one(warm, true) }); err != nil {
		return err
	}
	b.row(kb, "the same again", ph)
	if len(talks) == 1 {
		b.memory(kb, oneSession, w)
	}

	if err := ph.run(5, func() [][]*request { seed++; return one(fresh(seed), true) }); err != nil {
		return err
	}
	b.row(kb, "new session", ph)
	many := make([]*history, b.conns)
	for i := range many {
		seed++
		many[i] = fresh(seed)
	}
	all := func() [][]*request {
		var round [][]*request
		for _, h := range many {
			h.grow()
			round = append(round, one(h, true)[0])
		}
		return round
	}
	if err := ph.run(1, all); err != nil {
		return err
	}
	if err := ph.run(max(n/8, 5), all); err != nil {
		return err
	}
	b.row(kb, fmt.Sprintf("a step more, %d connections", b.conns), ph)
	b.memory(kb, fmt.Sprintf("%d sessions", len(talks)+5+b.conns), w)
	return b.restart(w, kb, warm)
}

// restart measures the first request of processes that find the session in
// their store.
func (b *bench) restart(w *ways, kb int, h *history) error {
	ph := &phase{targets: []*target{w.target(proxied), w.target(passing), w.target(reducing)}}
	sums := make(map[string]*series)
	for range 5 {
		for _, t := range ph.targets[1:] {
			if err := t.p.stop(); err != nil {
				return err
			}
			if err := t.p.start(b.ctx, b.furl, b.upstream.url); err != nil {
				return err
			}
		}
		h.grow()
		if err := ph.run(1, func() [][]*request { return one(h, true) }); err != nil {
			return err
		}
		for name, s := range ph.by {
			sum := sums[name]
			if sum == nil {
				sum = &series{}
				sums[name] = sum
			}
			sum.samples = append(sum.samples, s.samples...)
			sum.used, sum.unread = sum.used.plus(s.used), s.unread
		}
	}
	ph.by = sums
	b.row(kb, "a step more, after a restart", ph)
	return nil
}

// formats measures the other formats with the smallest body.
func (b *bench) formats() error {
	kb := b.sizes[0]
	for _, format := range []furl.Format{furl.FormatChat, furl.FormatResponses} {
		w, err := b.ways(fmt.Sprint("format-", format), kb, false)
		if err != nil {
			return err
		}
		h := newHistory(format, 1, kb<<10, models[format])
		ph := &phase{targets: w.targets}
		for _, stream := range []bool{true, false} {
			if err == nil {
				err = ph.run(1, func() [][]*request { return one(h, stream) })
			}
			if err == nil {
				err = ph.run(max(b.n/2, 10), func() [][]*request { h.grow(); return one(h, stream) })
			}
			name := fmt.Sprintf("%s, a step more", format)
			if !stream {
				name += ", not streamed"
			}
			if err == nil {
				b.row(kb, name, ph)
				b.judgeFormat(kb, fmt.Sprint(format), stream, ph)
			}
		}
		w.stop()
		if err != nil {
			return err
		}
	}
	return nil
}
