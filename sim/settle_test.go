package sim_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// A client that stops at the last event, not at the end of the stream, finds
// its request in the bill.
func TestBillAfterLastEvent(t *testing.T) {
	s, srv := serve(t, nil)
	last := map[string]string{"anthropic": "event: message_stop", "chat": "data: [DONE]", "responses": "event: response.completed"}
	for n := range 30 {
		d := dialects[n%len(dialects)]
		req, err := http.NewRequest(http.MethodPost, srv.URL+d.d.path(), strings.NewReader(d.d.body(d.model, toList(d.d.user("hi")), true)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer k")
		req.Header.Set("anthropic-version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() && lines.Text() != last[d.name] {
		}
		if b := s.Bill(); b.Requests != n+1 || len(s.Requests()) != n+1 {
			t.Errorf("%d requests on the bill after %d", b.Requests, n+1)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
