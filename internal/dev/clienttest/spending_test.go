package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refusals is how often the gateway has refused a request because of the limit.
func (st *fixture) refusals(t testing.TB, limit string) int {
	t.Helper()
	resp, err := http.Get(st.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(fmt.Sprintf(`furl_requests_limited_total\{limit=%q\} (\d+)`, limit)).FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// An agent that reaches a spending limit in the middle of its work shows furl's message
// to its user, and does not send the request again.
func TestSpendingLimit(t *testing.T) {
	const limit = "dollars_per_session"
	for _, c := range coders {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			program := c.program(t)
			st := newFixture(t, options{window: c.window, steps: 6})
			st.stop(t, syscall.SIGTERM)
			st.atHome(t, "config/furl/config.yaml", "gateway:\n  limits: {"+limit+": 0.0001}\n")
			st.start(t)
			if c.setup != nil {
				c.setup(t, st)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, program[0], append(program[1:len(program):len(program)], c.first("Work through the first pieces.")...)...)
			cmd.Env, cmd.Dir, cmd.WaitDelay = st.env(c.env(st)...), st.dir, 5*time.Second
			killGroup(cmd)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err := cmd.Run() // some exit with an error
			if ctx.Err() != nil {
				t.Errorf("the client does not end: %v", err)
			}
			if words := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(words, "spending limit reached") || !strings.Contains(words, "gateway.limits."+limit) {
				t.Errorf("the client shows %.3000q\n%s", words, st.requests())
			}
			if n := st.refusals(t, limit); n != 1 {
				t.Errorf("%d requests were refused, want 1\n%s", n, st.requests())
			}
		})
	}
}
