package main

import (
	"fmt"
	"math"
	"strings"
)

// The assumptions of the model. docs/operate/capacity.md repeats them.
const (
	requestsPerDay = 1500.0 // of an agent: 3 a minute for 8 hours and a margin
	peakFactor     = 2.5    // the busiest hour, compared with an even spread over 8 hours
	workHours      = 8.0
	workDays       = 22.0 // in a month
	busy           = 0.5  // share of a processor that is planned for
	replicas       = 2.0  // copies of the data: a primary and a standby
	bodyBytes      = 60e3 // of a request with its history, on the wire, and again to the provider
	spare          = 1    // gateways more than needed, so that one can be replaced

	coreHour  = 0.045 // US dollars: one virtual processor with 4 GB, list price of large providers, 2026
	diskMonth = 0.12  // US dollars for one GB of network SSD in a month
	cores     = 4.0   // of a gateway's machine
	dbCores   = 16.0  // of a database node
)

// needs is what so many agents need.
type needs struct {
	agents          float64
	peak            float64 // requests per second
	gateways, nodes float64
	disk            float64 // bytes in a month, with replicas
	network         float64 // bits per second at the peak, in and out of the gateways
	dollars         float64 // in a month
}

// maxHopping is the largest fleet, in gateways, for which no stickiness is planned. Each gateway
// reads and decodes what the others have recorded, so more of them cost more.
const maxHopping = 8

// point returns a measured point, zero if it was not measured.
func (f *figures) point(store string, gateways int) point {
	for _, p := range f.Points {
		if p.Store == store && p.Gateways == gateways {
			return p
		}
	}
	return point{}
}

// hopping is a model of the costs of a request when each request of a conversation goes to the next
// of n gateways: those of a single gateway, and for each of the others the
// decoding of what it has recorded, and one read of the store unless the request stays where the
// one before it was. It is fitted to the points of 1, 2 and 8 gateways.
func (f *figures) hopping(n int) point {
	one, two, eight := f.point("postgres", 1), f.point("postgres", 2), f.point("postgres", 8)
	at := func(of func(p *point) float64) float64 {
		d2, d8 := of(&two)-of(&one), of(&eight)-of(&one)
		read := max(0, min((7*d2-d8)*8/21, 2*d2)) // so that both are at least 0
		each := max(0, (d8-read*7/8)/7)
		return of(&one) + read*(1-1/float64(n)) + each*float64(n-1)
	}
	p := eight // disk and network do not depend on n
	p.Gateways = n
	p.GatewayCPU, p.ServerCPU = at(func(p *point) float64 { return p.GatewayCPU }), at(func(p *point) float64 { return p.ServerCPU })
	return p
}

// checkTable compares the model with the measured points.
func (f *figures) checkTable() string {
	var out strings.Builder
	out.WriteString("| gateways | gateways' CPU, ms: measured | model | difference | server's CPU, ms: measured | model | difference |\n|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, n := range []int{1, 2, 4, 8} {
		p, m := f.point("postgres", n), f.hopping(n)
		fmt.Fprintf(&out, "| %d | %.1f | %.1f | %+.0f %% | %.1f | %.1f | %+.0f %% |\n", n, p.GatewayCPU, m.GatewayCPU, 100*(m.GatewayCPU/p.GatewayCPU-1), p.ServerCPU, m.ServerCPU, 100*(m.ServerCPU/p.ServerCPU-1))
	}
	return out.String()
}

// needsOf computes what so many agents need. A fleet of more than maxHopping gateways is planned
// with a balancer that keeps a conversation on its gateway.
func (f *figures) needsOf(agents float64) needs {
	for n := 2; n <= maxHopping; n++ {
		if out := f.hopping(n).needsOf(agents); out.gateways <= float64(n) {
			return out
		}
	}
	return f.point("postgres, sticky", 4).needsOf(agents)
}

// needsOf computes what so many agents need from the costs of a request.
func (p point) needsOf(agents float64) needs {
	n := needs{agents: agents}
	n.peak = agents * requestsPerDay / (workHours * 3600) * peakFactor
	n.gateways = math.Ceil(n.peak*p.GatewayCPU/1000/busy/cores) + spare
	n.nodes = math.Ceil(n.peak*p.ServerCPU/1000/busy/dbCores) * replicas
	n.disk = agents * requestsPerDay * workDays * p.Growth * replicas
	n.network = n.peak * bodyBytes * 2 * 8
	n.dollars = (n.gateways*cores+n.nodes*dbCores)*coreHour*730 + n.disk/1e9*diskMonth
	return n
}

// fleets are the numbers of agents in the table.
var fleets = []float64{100, 10_000, 1_000_000}

func (f *figures) modelTable() string {
	var out strings.Builder
	out.WriteString("| agents | requests/s at the peak | gateways of 4 cores | database nodes of 16 cores | disk per month | network | cost per month | per agent |\n|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, agents := range fleets {
		n := f.needsOf(agents)
		fmt.Fprintf(&out, "| %s | %s | %.0f | %.0f | %s | %s | $%s | $%.2f |\n", thousands(agents), thousands(n.peak), n.gateways, n.nodes, unit(n.disk, "B"), unit(n.network, "bit/s"), thousands(n.dollars), n.dollars/agents)
	}
	return out.String()
}

// thousands formats a number with separators.
func thousands(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.1f", n)
	}
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// unit formats a number with a decimal prefix.
func unit(n float64, of string) string {
	for _, prefix := range []string{"", "k", "M", "G", "T"} {
		if n < 999.5 {
			return fmt.Sprintf("%.3g %s%s", n, prefix, of)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.3g P%s", n, of)
}

// chart draws cores of gateways and of the database by the number of agents, both on
// logarithmic axes.
func (f *figures) chart() string {
	const width, height, left, bottom = 640.0, 320.0, 60.0, 40.0
	x := func(agents float64) float64 { return left + (math.Log10(agents)-2)/4*(width-left-20) }
	y := func(n float64) float64 { return height - bottom - math.Log10(max(n, 1))/5*(height-bottom-20) }
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12"><title>Processor cores by number of agents</title><rect width="100%%" height="100%%" fill="#fff"/>`+"\n", width, height)
	for i := range 5 {
		agents := math.Pow(10, float64(i+2))
		fmt.Fprintf(&out, `<line x1="%.0f" x2="%.0f" y1="20" y2="%.0f" stroke="#ddd"/><text x="%.0f" y="%.0f" text-anchor="middle">%s</text>`+"\n", x(agents), x(agents), height-bottom, x(agents), height-bottom+16, thousands(agents))
	}
	for i := range 6 {
		n := math.Pow(10, float64(i))
		fmt.Fprintf(&out, `<line x1="%.0f" x2="%.0f" y1="%.0f" y2="%.0f" stroke="#ddd"/><text x="%.0f" y="%.0f" text-anchor="end">%s</text>`+"\n", left, width-20, y(n), y(n), left-6, y(n)+4, strings.TrimSuffix(thousands(n), ".0"))
	}
	for _, line := range []struct {
		name, color string
		cores       func(needs) float64
	}{
		{"gateways", "#1f77b4", func(n needs) float64 { return n.gateways * cores }},
		{"database", "#d62728", func(n needs) float64 { return n.nodes * dbCores }},
	} {
		var points []string
		for e := 2.0; e <= 6; e += 0.05 {
			agents := math.Pow(10, e)
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(agents), y(line.cores(f.needsOf(agents)))))
		}
		fmt.Fprintf(&out, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", line.color, strings.Join(points, " "))
		fmt.Fprintf(&out, `<text x="%.0f" y="%.0f" text-anchor="end" fill="%s">%s</text>`+"\n", x(1e6)-4, y(line.cores(f.needsOf(1e6)))-6, line.color, line.name)
	}
	fmt.Fprintf(&out, `<text x="%.0f" y="%.0f" text-anchor="middle">agents</text><text x="14" y="14">cores</text></svg>`+"\n", width/2, height-6)
	return out.String()
}
