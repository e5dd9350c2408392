package recorded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/storage"
)

// A session of another machine is put under the folder here that has the same name and a session with the
// same first message.
func TestProjectHere(t *testing.T) {
	here := filepath.Join(t.TempDir(), "furl")
	if err := os.Mkdir(here, 0o755); err != nil {
		t.Fatal(err)
	}
	recording := func(id, folder, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"u1","parentUuid":null,"cwd":%q,"sessionId":%q,"timestamp":"2026-01-02T10:00:00Z","message":{"role":"user","content":%q}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","cwd":%[1]q,"sessionId":%[2]q,"timestamp":"2026-01-02T10:00:05Z","message":{"id":"msg_%[2]s","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":5,"output_tokens":4}}}
`, folder, id, text)
	}
	store := openStore(t)
	importAll(t, &Importer{Store: store}, recording("a", here, "Count the files."))
	importAll(t, &Importer{Store: store},
		recording("b", "/Users/ann/src/furl", "Count the files."), recording("c", `C:\src\Furl`, "Count the files."),
		recording("d", "/Users/ann/src/furl", "Another task."), recording("e", "/Users/ann/src/box", "Count the files."))
	var got []string
	for info, err := range store.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSuffix(string(info.Session), "-")+" "+strings.Replace(info.Project, here, "HERE", 1))
	}
	want := map[string]string{"a": "HERE", "b": "HERE", "c": "HERE", "d": "/Users/ann/src/furl", "e": "/Users/ann/src/box"}
	for _, line := range got {
		id, project, _ := strings.Cut(line, " ")
		if want[id] != project {
			t.Errorf("session %s is in %q, want %q", id, project, want[id])
		}
	}
	if len(got) != len(want) {
		t.Errorf("sessions %q", got)
	}
}
