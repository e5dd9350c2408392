package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/furlhq/furl"
)

// stores measures how much the store grows with each step, after a short history
// and after a long one.
func (b *bench) stores() error {
	short, long := b.sizes[0], b.sizes[len(b.sizes)-1]
	var per [2]float64
	for i, kb := range []int{short, long} {
		grown, fresh, err := b.growth(kb)
		if err != nil {
			return err
		}
		per[i] = grown / fresh
		b.mark(grown <= 2*fresh, fmt.Sprintf("%d KB: growth of the store per step, with its index, relative to the step's bytes", kb),
			"≤ 2 ×", "%.2f × (%.0f for %.0f bytes)", per[i], grown, fresh)
	}
	b.mark(per[1] <= 1.25*per[0], fmt.Sprintf("growth of the store per step after %d KB, relative to that after %d KB", long, short), "≤ 1.25 ×", "%.2f ×", per[1]/per[0])
	return nil
}

// steps is how many steps the growth is averaged over: some pages are filled
// better than others.
const steps = 60

func (b *bench) growth(kb int) (grown, fresh float64, err error) {
	p, err := newGateway(b.dir, fmt.Sprint("store-", kb), "--policy", "none")
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
	grown = (fileSize(p.store()) - had) / steps
	if grown <= 0 {
		grown = unknown
	}
	if math.IsNaN(grown) {
		b.note("%d KB: the store cannot be measured: file %s does not grow", kb, filepath.Base(p.store()))
	}
	return grown, float64(h.size-size) / steps, nil
}

// fileSize returns the size of a file in bytes, unknown if it does not exist.
func fileSize(name string) float64 {
	info, err := os.Stat(name)
	if err != nil {
		return unknown
	}
	return float64(info.Size())
}
