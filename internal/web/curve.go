package web

import (
	"math"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// sizeCurve is the data of the curve of sizes. The lists have one element per request of
// the current path. Sizes are in the provider's tokens.
type sizeCurve struct {
	Size []int `json:"size"`
	// Without is the size without reductions less Size.
	Without   []int `json:"without"`
	Estimated []int `json:"estimated"` // 1 if Size is an estimate
	// Window, Trigger and Target are those of each request, 0 for none.
	Window  []int `json:"window"`
	Trigger []int `json:"trigger"`
	Target  []int `json:"target"`
	// Start is the time of the first request in seconds since 1970, Time the seconds
	// since the previous request.
	Start int64   `json:"start"`
	Time  []int64 `json:"time"`
	// Cost is in hundredths of a cent, -1 if it is unknown.
	Cost []int `json:"cost"`
	// Input, Read and Write are the parts of the prompt that were not cached, read from
	// the cache and written to it. Output is the reply.
	Input  []int `json:"input"`
	Read   []int `json:"read"`
	Write  []int `json:"write"`
	Output []int `json:"output"`
	// Breaks are the reasons why requests did not use the prompt cache; Break has
	// indexes into it.
	Breaks []string `json:"breaks"`
	Break  []int    `json:"break"`
	// Reductions are all reductions of the path.
	Reductions []curveReduction `json:"reductions"`
}

// curveReduction is a reduction on the curve.
type curveReduction struct {
	Seq furl.Seq `json:"seq"`
	// Request is the first request with it, 0 if there has been none.
	Request int    `json:"request"`
	Line    string `json:"line"`
	Undone  bool   `json:"undone,omitempty"`
}

// listRequests responds with the requests of the current path.
func (p *Page) listRequests(v *visit) error {
	return v.readRequests(func(snap *snapshot) error {
		m, err := v.moment(snap)
		if err != nil {
			return err
		}
		return v.json(m.curve(snap.log.State()))
	})
}

// curve returns the sizes of all requests. now is the current state.
func (m *moment) curve(now *furl.State) *sizeCurve {
	c := &sizeCurve{Breaks: []string{""}, Reductions: []curveReduction{}}
	first := make(map[furl.Seq]int) // the first request with a reduction
	for i := range m.requests {
		q := &m.requests[i]
		c.add(q)
		if i == 0 {
			c.Start, c.Time = q.Time.Unix(), append(c.Time, 0)
		} else {
			c.Time = append(c.Time, q.Time.Unix()-m.requests[i-1].Time.Unix())
		}
		for _, seq := range q.Reductions {
			first[seq] = q.Number
		}
	}
	for _, r := range policy.Reductions(now) {
		c.Reductions = append(c.Reductions, curveReduction{r.Seq, first[r.Seq], reductionLine(&r), r.Lifted})
	}
	return c
}

func (c *sizeCurve) add(q *session.Request) {
	u := q.Usage
	c.Size, c.Without = append(c.Size, q.Size), append(c.Without, q.SizeWithout-q.Size)
	estimated := 0
	if q.Estimated {
		estimated = 1
	}
	c.Estimated = append(c.Estimated, estimated)
	c.Window, c.Trigger, c.Target = append(c.Window, q.Window), append(c.Trigger, q.Trigger), append(c.Target, q.Target)
	cost := -1
	if q.Priced {
		cost = int(math.Round(q.Cost * 1e4))
	}
	c.Cost = append(c.Cost, cost)
	c.Input, c.Read = append(c.Input, u.Input), append(c.Read, u.CacheRead)
	c.Write, c.Output = append(c.Write, u.CacheWrite+u.CacheWrite1h), append(c.Output, u.Output)
	at := slices.Index(c.Breaks, q.Break)
	if at < 0 {
		at = len(c.Breaks)
		c.Breaks = append(c.Breaks, q.Break)
	}
	c.Break = append(c.Break, at)
}
