package replay

import "math"

// risk is what the requests of a run cost that were not sent like this, so that their cost is
// not known, in dollars for the prompts.
type risk struct {
	requests int
	cost     float64 // as the run has it
	plain    float64 // if the cache had worked as documented
	each     float64 // what losing the cache of each request in turn would add, in sum
	// low and high are how far the cost may be below and above, squared, so that the sums of
	// independent sessions are right.
	low, high float64
}

func (k *risk) add(o risk) {
	k.requests += o.requests
	k.cost += o.cost
	k.plain += o.plain
	k.each += o.each
	k.low += o.low
	k.high += o.high
}

// interval sets low and high.
func (k *risk) interval(l *losses) {
	low, high := l.within(k)
	k.low, k.high = max(0, k.cost-low), max(0, high-k.cost)
	k.low *= k.low
	k.high *= k.high
}

// asked is a recorded request that continues another one: what its prompt cost, what it would
// have cost if the cache had worked as documented, and what losing the entries adds to
// that, in dollars.
type asked struct {
	billed, plain, each float64
	lost                float64 // the share of the entries that was lost
}

// losses says how often the requests of a session have lost their cache entries, and what those
// cost that did not.
type losses struct {
	requests      int
	lost          float64 // parts of entries count as parts
	billed, plain float64
}

// lossesOf sums recorded requests.
func lossesOf(requests []asked) (l losses) {
	for i := range requests {
		q := &requests[i]
		l.requests++
		l.lost += q.lost
		if q.lost == 0 {
			l.billed += q.billed
			l.plain += q.plain
		}
	}
	return l
}

// riskOf returns the risk of requests like the recorded ones.
func riskOf(requests []asked) (k risk) {
	for i := range requests {
		q := &requests[i]
		k.add(risk{requests: 1, cost: q.billed, plain: q.plain, each: q.each})
	}
	return k
}

// What is known before a session has shown how often its entries are lost: as much as
// priorRequests requests with priorLost losses say. Costs without losses are off by
// sizeError divided by the root of the number of requests; the ratio of a session is trusted
// after trusted requests. docs/internals/cost-model.md has what they were chosen on.
const (
	priorLost     = .2
	priorRequests = 60
	sizeError     = .35
	trusted       = 20
)

// within returns the limits between which 90% of sessions' costs are, if losses are as
// frequent as before: what the prompts of k cost, in dollars.
func (l *losses) within(k *risk) (low, high float64) {
	if k.requests == 0 {
		return k.plain, k.plain
	}
	ratio := 1.
	if l.plain > 0 {
		n := float64(l.requests)
		ratio = (n*l.billed/l.plain + trusted) / (n + trusted)
	}
	lost, kept := priorLost+l.lost, priorRequests+max(0, float64(l.requests)-l.lost)
	off := min(.5, sizeError/math.Sqrt(float64(k.requests)))
	each := k.each / float64(k.requests)
	return k.plain*ratio*(1-off) + each*float64(lossesAt(.05, k.requests, lost, kept)),
		k.plain*ratio*(1+off) + each*float64(lossesAt(.95, k.requests, lost, kept))
}

// lossesAt returns a quantile of the number of losses in n requests: their distribution is
// beta-binomial.
func lossesAt(quantile float64, n int, lost, kept float64) int {
	lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	base := lg(float64(n)+1) - lg(float64(n)+lost+kept) - lg(lost) - lg(kept) + lg(lost+kept)
	sum := 0.
	for x := range n {
		f, rest := float64(x), float64(n-x)
		sum += math.Exp(base - lg(f+1) - lg(rest+1) + lg(f+lost) + lg(rest+kept))
		if sum >= quantile {
			return x
		}
	}
	return n
}
