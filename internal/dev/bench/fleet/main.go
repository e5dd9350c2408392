package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

//go:embed figures.json
var measured []byte

// figures is figures.json.
type figures struct {
	Requests int     `json:"requests"` // of a round
	Rounds   int     `json:"rounds"`
	Words    string  `json:"workload"`
	Points   []point `json:"points"`
}

// point is what one request costs with so many gateways on a store.
type point struct {
	Store        string  `json:"store"`
	Gateways     int     `json:"gateways"`
	GatewayCPU   float64 `json:"gateway_cpu_ms"` // of all gateways
	ServerCPU    float64 `json:"server_cpu_ms"`  // of the database's processes
	Transactions float64 `json:"transactions"`
	WAL          float64 `json:"wal_bytes"`
	Growth       float64 `json:"store_bytes"`    // 0: not measured
	Provider     float64 `json:"provider_bytes"` // of bodies, sent and received
}

func main() {
	var f figures
	if err := json.Unmarshal(measured, &f); err != nil {
		fmt.Fprintln(os.Stderr, "figures.json:", err)
		os.Exit(1)
	}
	fmt.Print(f.measuredTable(), "\n", f.checkTable(), "\n", f.modelTable())
	if err := os.WriteFile("../../../docs/operate/capacity.svg", []byte(f.chart()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measuredTable is the table of the measured points.
func (f *figures) measuredTable() string {
	var out strings.Builder
	out.WriteString("| store | gateways | CPU in gateways, ms | CPU in the server, ms | transactions | write-ahead log, kB | store growth, kB | bytes to and from the provider, kB | total CPU, 1 gateway = 1 |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range f.Points {
		server := "– | – | – | –"
		if p.ServerCPU > 0 {
			server = fmt.Sprintf("%.1f | %.1f | %.1f | %.1f", p.ServerCPU, p.Transactions, p.WAL/1000, p.Growth/1000)
		}
		times := "–"
		if one := f.point(strings.TrimSuffix(p.Store, ", sticky"), 1); p.ServerCPU > 0 {
			times = fmt.Sprintf("%.2f×", (p.GatewayCPU+p.ServerCPU)/(one.GatewayCPU+one.ServerCPU))
		}
		fmt.Fprintf(&out, "| %s | %d | %.1f | %s | %.0f | %s |\n", p.Store, p.Gateways, p.GatewayCPU, server, p.Provider/1000, times)
	}
	return out.String()
}
