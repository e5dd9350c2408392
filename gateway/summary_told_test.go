package gateway_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// The answer's header and the metrics tell of a summary as they do of any other
// reduction, although it was not the plan that made it.
func TestSummaryIsTold(t *testing.T) {
	p := &gated{gate: make(chan struct{})} // or it could be shown already while it becomes due
	st := compacting(t, p, nil)
	a := newAgent(furl.FormatAnthropic, false)
	st.due(t, a)
	close(p.gate)
	st.gateway.WaitSummaries()
	for {
		resp, answer := st.post(t, a.path(), a.body())
		if shown := len(st.only(t).Reductions()) > 0; !shown {
			if n := resp.Header.Get("X-Furl-Reductions"); n != "0" {
				t.Fatalf("%s reductions are told of, there are none", n)
			}
			if !a.take(t, answer, few) {
				t.Fatal("the agent ended before a summary was shown")
			}
			continue
		}
		before, _ := strconv.Atoi(resp.Header.Get("X-Furl-Tokens-Before"))
		after, _ := strconv.Atoi(resp.Header.Get("X-Furl-Tokens-After"))
		if resp.Header.Get("X-Furl-Reductions") != "1" || !strings.HasPrefix(resp.Header.Get("X-Furl-Plan"), "compact;tokens=") || before <= after {
			t.Errorf("the header says %v", resp.Header)
		}
		break
	}
	resp, err := http.Get(st.front.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `furl_reductions_total{stage="compact"} 1`) {
		t.Error("furl_reductions_total does not count it")
	}
}
