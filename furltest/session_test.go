package furltest_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
)

// A generated session loads into a log, has the requested size, and is the
// same for the same options.
func TestSession(t *testing.T) {
	for _, o := range []furltest.SessionOptions{
		{},
		{Messages: 400, MessageBytes: 2000, Exchanges: true, Reductions: true},
		{Messages: 50, Format: furl.FormatChat, Reductions: true},
		{Messages: 50, Format: furl.FormatResponses, Seed: 3},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			records := furltest.Session(o)
			if diff := cmp.Diff(records, furltest.Session(o)); diff != "" {
				t.Fatalf("equal options gave different sessions:\n%s", diff)
			}
			if err := furl.NewLog().Load(records); err != nil {
				t.Fatal(err)
			}
			kinds := make(map[string]int)
			messages, bytes := 0, 0
			for _, r := range records {
				kinds[fmt.Sprintf("%T", r.Body)]++
				if m, ok := r.Body.(*furl.Message); ok {
					messages, bytes = messages+1, bytes+m.Bytes()
				}
			}
			want := max(20, o.Messages)
			if messages < want || messages > want+2 {
				t.Errorf("%d messages, want about %d", messages, want)
			}
			size := max(1000, o.MessageBytes)
			if mean := bytes / messages; mean < size/2 || mean > size*2 {
				t.Errorf("messages have %d bytes on average, want about %d", mean, size)
			}
			if o.Messages == 400 && len(kinds) != 6 {
				t.Errorf("records are %v, want all six kinds", kinds)
			}
		})
	}
}
