package exchange

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
)

// Memory is reserved once before a request is decoded. What is decoded already counts as
// what it is, and not by its JSON values again.
func TestReserve(t *testing.T) {
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range 50 {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"%d"}`, i), `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{"x":[`+strings.TrimSuffix(strings.Repeat("1,", 100), ",")+`]}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"c"}]}`)
	}
	var reserved, parts []int64
	receive := func(n int, fail error) *Exchange {
		t.Helper()
		r := received(anthropic.Codec)
		r.Body = []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[` + strings.Join(list[:n], ",") + `]}`)
		r.Reserve = func(bytes int64, p int) error {
			reserved, parts = append(reserved, bytes), append(parts, int64(p))
			return fail
		}
		x, err := Of(all).Receive(t.Context(), r, BeginOptions{})
		if !errors.Is(err, fail) && !errors.Is(fail, clients.ErrTooLarge) {
			t.Fatalf("%v, want %v", err, fail)
		}
		return x
	}
	receive(141, nil).Drop()
	receive(144, nil).Drop()
	if len(reserved) != 2 || reserved[1] >= reserved[0]*2/3 {
		t.Errorf("reserved %d bytes in order, want two, the second a third less", reserved)
	}
	if parts[1] < 2*141 {
		t.Errorf("%d parts, want those of the whole request", parts[1])
	}
	if x := receive(147, clients.ErrTooLarge); x == nil || x.Passed != session.PassedTooLarge || x.Session != nil || !strings.Contains(string(x.Body), list[146]) {
		t.Errorf("a request that is too large: %+v", x)
	}
	if x := receive(147, errors.New("busy")); x != nil {
		t.Errorf("without memory: %+v", x)
	}
}
