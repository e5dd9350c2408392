package sse_test

import (
	"fmt"

	"github.com/furlhq/furl/internal/sse"
)

// A proxy relays each chunk as it arrives, and examines the events
// afterwards.
func ExampleScanner() {
	s := new(sse.Scanner)
	for _, chunk := range []string{"event: ping\nda", "ta: {}\n\n: still here\n", "\ndata: caf\xc3", "\xa9\n\n"} {
		for e, err := range s.Feed([]byte(chunk)) {
			if err != nil {
				fmt.Println(err)
				return
			}
			if e.HasData {
				fmt.Printf("%d-%d %q %s\n", e.Start, e.End(), e.Type, e.Data)
			}
		}
	}
	// Output:
	// 0-22 "ping" {}
	// 36-49 "" café
}
