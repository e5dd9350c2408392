package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
)

// Every chunk of a transcript can be loaded, and together they have each message once.
func TestChunks(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	url := serve(t, all, nil)
	for _, s := range importFiles(t, all, "entire-cli/bc-*.gz", "agentv/1f-*.jsonl.gz") {
		page := url + "/furl/sessions/" + string(s.ID())
		status, text := get(t, page)
		if status != 200 {
			t.Fatalf("%s: status %d: %.300s", s.ID(), status, text)
		}
		seen := make(map[string]int)
		for n := range strings.Count(text, `data-chunk="`) {
			status, rows := get(t, fmt.Sprintf("%s/messages?chunk=%d", page, n))
			if status != 200 {
				t.Fatalf("%s chunk %d: status %d", s.ID(), n, status)
			}
			for _, m := range regexp.MustCompile(`<article class="row [a-z-]+[^"]*" id="m(\d+)" data-seq="\d+">`).FindAllStringSubmatch(rows, -1) {
				seen[m[1]]++
			}
		}
		log := sessiontest.Log(t, s)
		st := log.State()
		if len(seen) != st.Len() {
			t.Errorf("%s: %d messages shown of %d", s.ID(), len(seen), st.Len())
		}
		for i := range st.Len() {
			if seq, _ := st.Message(i); seen[fmt.Sprint(seq)] != 1 {
				t.Errorf("%s: message %d is shown %d times", s.ID(), seq, seen[fmt.Sprint(seq)])
			}
		}
		if status, _ := get(t, page+"/messages?chunk=99999"); status != 404 {
			t.Errorf("a chunk after the last: status %d", status)
		}
	}
}
