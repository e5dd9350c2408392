package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// The marker of a compaction has a folded part that says what it lost, escaped, with links to
// the originals.
func TestLost(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "compaction", Window: 20_000})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	if _, err := s.Append(t.Context(), furl.TextMessage(furl.RoleUser, "Never touch <img src=x> the vendor_folder.")); err != nil {
		t.Fatal(err)
	}
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 20, 2000))
	red, err := s.Reduce(t.Context(), session.ReduceOptions{Stage: &policy.Compact{Summarizer: writer{}}})
	if err != nil || len(red.Planned) == 0 {
		t.Fatalf("no summary: %v, %s", err, red.Reason)
	}
	list, err := s.Lost()
	if err != nil || len(list) != 1 || list[0].Sentences.Total == 0 {
		t.Fatalf("nothing is lost: %+v, %v", list, err)
	}
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	_, body := get(t, fmt.Sprintf("%s/part?at=%d", url, list[0].Reduction))
	for _, want := range []string{"Sentences of the user: ", `data-inspect="1.0"><bdi>Never touch &lt;img src=x&gt; the vendor_folder.</bdi>`, "Identifiers: "} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s:\n%.2000s", want, body)
		}
	}
	if strings.Contains(body, "<img") {
		t.Error("the text is not escaped")
	}
	_, page := get(t, fmt.Sprintf("%s?at=%d", url, list[0].Reduction))
	if want := fmt.Sprintf(`<details data-part="%d"><summary>What it lost</summary>`, list[0].Reduction); !strings.Contains(page, want) {
		t.Errorf("the marker lacks %s", want)
	}
}
