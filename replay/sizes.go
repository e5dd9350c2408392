package replay

import "github.com/furlhq/furl"

// sizes compares what was counted with what was reported.
type sizes struct {
	counted, got        []float64
	reported, estimated int
}

func (z *sizes) request(_ *furl.State, v *furl.View, ex *furl.Exchange, _ furl.Model) {
	if p := ex.Usage.Prompt(); p > 0 {
		z.counted, z.got = append(z.counted, float64(v.Tokens)), append(z.got, float64(p))
		z.reported = max(z.reported, p)
	}
}

func (z *sizes) fit() (int, float64) {
	n := float64(len(z.got))
	if n < 3 {
		return 0, 1
	}
	var sx, sy, sxx, sxy float64
	for i := range z.got {
		sx += z.counted[i]
		sy += z.got[i]
		sxx += z.counted[i] * z.counted[i]
		sxy += z.counted[i] * z.got[i]
	}
	c := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return max(0, int((sy-c*sx)/n)), c
}
