// Command fleet says what a fleet of gateways needs for so many agents. It reads
// figures.json, which the benchmark of this package writes, and prints the table of
// docs/operate/capacity.md and its chart.
//
//	go test -C internal/dev/bench -run '^$' -bench Fleet -benchtime 1x -timeout 1h ./fleet   measure
//	go test -C internal/dev/bench -run '^$' -bench Rows -benchtime 1x -timeout 1h ./fleet    costs in a large store
//	go run -C internal/dev/bench ./fleet                                                     table and chart
package main
