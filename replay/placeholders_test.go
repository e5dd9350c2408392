package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/transcript"
)

// placeholdersPage is the page with thirty placeholders, to be read as a model
// would.
const placeholdersPage = "../docs/internals/placeholders.md"

const placeholdersHead = `# Thirty placeholders

For people who change what models read in place of hidden content.

These are placeholders that ` + "`auto`" + ` wrote in replays of recorded sessions, after their calls, and as the model sees them. To print them again:

    FURL_RECORDINGS=folder go test ./replay -run TestPlaceholders -update

Read them as a model would: is it clear what is missing, and whose it was? Is each name a whole one that one could search for or open? Is there a
sentence that could be taken for the user's, or anything that the model can do nothing with?

`

// TestPlaceholders compares the page with thirty placeholders of recorded sessions, spread
// over the recordings. With -update it writes them. Under the race detector, one
// recording is replayed, and the page must have one of its placeholders.
func TestPlaceholders(t *testing.T) {
	dir := recordings.Dir(t)
	from := []string{"entire-cli", "agentv", "nimbus", "pi-mono"}
	if raceDetector {
		from = []string{"entire-cli/6d-123b9a5bc6-0.jsonl.gz"}
	}
	for i, name := range from {
		from[i] = filepath.Join(dir, name)
	}
	var files [][]string
	for rec, err := range transcript.Walk(from...) {
		if errors.As(err, new(*transcript.UnknownFilesError)) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		o := Options{Candidates: presets(t, "auto"), Workers: 1}
		o.sent = func(r *run, plan *furl.Plan) {
			for _, red := range plan.Reductions {
				found = append(found, placeholdersOf(r.log.State(), red)...)
			}
		}
		replayAll(t, o, rec)
		if len(found) > 0 {
			files = append(files, found)
		}
	}
	var page strings.Builder
	page.WriteString(placeholdersHead)
	for n := range 30 {
		found := files[n%len(files)]
		round := n/len(files) + 1 // another place of the recording each time
		page.WriteString(fmt.Sprintf("## %d\n\n```\n%s\n```\n\n", n+1, found[len(found)*round/3%len(found)]))
	}
	want := strings.TrimSpace(page.String()) + "\n"
	if *update && !raceDetector {
		if err := os.WriteFile(placeholdersPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(placeholdersPage)
	if err != nil {
		t.Fatal(err)
	}
	if raceDetector {
		if !slices.ContainsFunc(files[0], func(found string) bool { return strings.Contains(string(got), found) }) {
			t.Errorf("%s has no placeholder of %s; write it again with -update", placeholdersPage, from[0])
		}
		return
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is out of date; write it again with -update (- new, + page):\n%s", placeholdersPage, diff)
	}
}

// maxPlaceholder is the longest placeholder on the page, in bytes.
const maxPlaceholder = 1600

// placeholdersOf returns what a reduction shows, with the call before it: results
// alone, and markers together with the list that follows them.
func placeholdersOf(s *furl.State, red *furl.Reduction) (found []string) {
	marker := ""
	for _, item := range red.Items {
		switch show := item.Show.(type) {
		case furl.Mark:
			b := &show.Messages[0].Blocks[0]
			marker = fmt.Sprintf("%-9s %s\n", show.Messages[0].Role, b.Text)
		case furl.In:
			text := marker
			if i, ok := s.Find(item.Spans[0].First.Msg); ok {
				text += callBefore(s, i, item.Spans[0].First.Block)
			}
			text += "result    " + strings.ReplaceAll(show.Text, "\n", "\n          ")
			if len(text) < maxPlaceholder && !strings.Contains(text, "```") {
				found = append(found, text)
			}
			marker = ""
		}
	}
	return found
}

func callBefore(s *furl.State, message, block int) string {
	_, m := s.Message(message)
	id := m.Blocks[block].ID
	for i := message - 1; i >= max(0, message-9); i-- {
		_, m := s.Message(i)
		j := slices.IndexFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall && b.ID == id })
		if j < 0 {
			continue
		}
		args := string(m.Blocks[j].Args)
		if len(args) > 160 {
			args = strings.ToValidUTF8(args[:160], "") + "…"
		}
		return fmt.Sprintf("call      %s %s\n", m.Blocks[j].Name, args)
	}
	return ""
}
