package main

import (
	"fmt"
	"os"
	"time"

	"github.com/furlhq/furl"
)

// stores measures by how much the store grows with each step, behind a short
// history and behind a long one.
func (b *bench) stores() error {
	per := make(map[int]float64)
	for _, kb := range []int{b.sizes[0], b.sizes[len(b.sizes)-1]} {
		grown, fresh, err := b.growth(kb)
		if err != nil {
			return err
		}
		per[kb] = grown / fresh
		b.mark(grown <= 1.5*fresh, fmt.Sprintf("%d KB: the store grows with a step, by what is new in it", kb), "≤ 1.5 ×", "%.2f × (%.0f of %.0f bytes)", grown/fresh, grown, fresh)
	}
	return nil
}

// steps is how many are sent to see how the store grows: some pages are filled
// better than others.
const steps = 60

// gathered is how long it takes at most until what was appended is indexed.
const gathered = 2 * time.Second

func (b *bench) growth(kb int) (grown, fresh float64, err error) {
	p, err := newGateway(b.dir, fmt.Sprint("store-", kb), "--policy", "auto", "--window", fmt.Sprint(window(kb)))
	if err != nil {
		return 0, 0, err
	}
	t := newTarget("store", p)
	h := newHistory(furl.FormatAnthropic, 3, kb<<10, models[furl.FormatAnthropic])
	send := func(n int) error {
		if err := p.start(b.ctx, b.furl, b.upstream.url); err != nil {
			return err
		}
		for range n {
			h.grow()
			if _, err := t.send(one(h, true)[0][0]); err != nil {
				return err
			}
		}
		time.Sleep(gathered)
		settle([]*target{t})
		return p.stop()
	}
	if err := send(1); err != nil {
		return 0, 0, err
	}
	had, size := fileSize(p.store()), h.size
	if err := send(steps); err != nil {
		return 0, 0, err
	}
	return float64(fileSize(p.store())-had) / steps, float64(h.size-size) / steps, nil
}

func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}
