package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
)

// A secret that is redacted by the API is gone from what the gateway shows, the client
// continues the same session with it in its history, and it is not recorded again.
func TestRedactByTheAPI(t *testing.T) {
	const secret = "sk-ant-REDACTME0123456789abcdefghij"
	st := compacting(t, &gated{}, nil, func(o *session.Options) { o.Policy = "none" })
	a := newAgent(furl.FormatAnthropic, false)
	for i := range 3 {
		a.step(t, st, func(furl.Block) string { return fmt.Sprintf("result %d %s", i, strings.Repeat(secret, i%2)) })
	}
	s := st.only(t)
	recorded := func() (text string) {
		for _, r := range st.only(t).Records(0) {
			line, err := (record.JSON{}).Append(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			text += string(line)
		}
		return text
	}
	path := "/sessions/" + string(s.ID()) + "/redact"
	if status, out := st.ask(t, "POST", path, `{"dry_run":true}`); status != 200 || out["texts"] == 0.0 || strings.Contains(fmt.Sprint(out), secret) || !strings.Contains(recorded(), secret) {
		t.Fatalf("%d %v", status, out)
	}
	if status, out := st.ask(t, "POST", path, ""); status != 200 || out["texts"] == 0.0 || out["undo"] != nil || strings.Contains(fmt.Sprint(out), secret) {
		t.Fatalf("%d %v", status, out)
	}
	if strings.Contains(recorded(), secret) {
		t.Error("the secret is still shown")
	}
	before := s.ID()
	for range 2 {
		a.step(t, st, func(furl.Block) string { return "later" })
	}
	if again := st.only(t); again.ID() != before || !strings.Contains(recorded(), "later") || strings.Contains(recorded(), secret) {
		t.Errorf("session %s continues as %s, or the secret is recorded again", before, again.ID())
	}
	st.allOK(t)
}
