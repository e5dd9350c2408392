package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/furlhq/furl"
)

// stores measures by how much the store grows with each step, behind a short
// history and behind a long one.
func (b *bench) stores() error {
	short, long := b.sizes[0], b.sizes[len(b.sizes)-1]
	var per [2]float64
	for i, kb := range []int{short, long} {
		grown, fresh, err := b.growth(kb)
		if err != nil {
			return err
		}
		per[i] = grown / fresh
		b.mark(grown <= 2*fresh, fmt.Sprintf("%d KB: the store grows with a step, its index and all, of what is new in the step", kb),
			"≤ 2 ×", "%.2f × (%.0f of %.0f bytes)", per[i], grown, fresh)
	}
	b.mark(per[1] <= 1.25*per[0], fmt.Sprintf("a step behind %d KB, in the store, of one behind %d KB", long, short), "≤ 1.25 ×", "%.2f ×", per[1]/per[0])
	return nil
}

// steps is how many are sent to see how the store grows: some pages are filled
// better than others.
const steps = 60

// gathered is how long it takes at most until what was appended is indexed.
const gathered = 2 * time.Second

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
	grown = (fileSize(p.store()) - had) / steps
	if grown <= 0 {
		grown = unknown
	}
	if math.IsNaN(grown) {
		b.note("%d KB: the store cannot be measured: nothing that grows is in %s", kb, filepath.Base(p.store()))
	}
	return grown, float64(h.size-size) / steps, nil
}

// fileSize is that of a file, unknown if there is none.
func fileSize(name string) float64 {
	info, err := os.Stat(name)
	if err != nil {
		return unknown
	}
	return float64(info.Size())
}
