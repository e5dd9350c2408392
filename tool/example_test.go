package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/tool"
)

// An agent edits a file, and the program puts the file back.
func Example() {
	dir, err := os.MkdirTemp("", "folder")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	copies := filepath.Join(dir, ".copies")
	if err := os.WriteFile(filepath.Join(dir, "greeting.txt"), []byte("Hello.\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	sessions, err := session.New(inmem.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := sessions.Create(storage.Meta{Title: "Change the greeting"})
	lastRecord := func() uint64 { return uint64(s.Info().Records) }
	provider := httptest.NewServer(sim.New(&sim.Options{Player: editor()}))
	defer provider.Close()
	model := agent.Model{Format: furl.FormatAnthropic, ID: "claude-sonnet-4-5", BaseURL: provider.URL, Key: "test"}
	approve := func(_ context.Context, _ agent.Call, p tool.Preview) agent.Decision {
		fmt.Print(p.Title, "\n", p.Diff)
		return agent.Decision{Allow: true}
	}

	folder, err := tool.Open(dir, &tool.Options{Copies: copies, Record: lastRecord})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	a, err := agent.New(s, model, &agent.Options{Tools: folder.Tools(), Approve: approve})
	if err != nil {
		fmt.Println(err)
		return
	}
	before := lastRecord()
	for _, err := range a.Run(context.Background(), agent.Text("Change the greeting.")) {
		if err != nil {
			fmt.Println(err)
			return
		}
	}

	changes, err := folder.Changes(before)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range changes {
		fmt.Println(c.Path, c.Others)
	}
	skipped, err := folder.Restore(changes, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := os.ReadFile(filepath.Join(dir, "greeting.txt"))
	fmt.Printf("%s%d skipped, %v\n", data, len(skipped), err)
	// Output:
	// Edit greeting.txt
	// --- greeting.txt
	// +++ greeting.txt
	// @@ -1,1 +1,1 @@
	// -Hello.
	// +Good morning.
	// greeting.txt false
	// Hello.
	// 0 skipped, <nil>
}

// editor is a model that makes one edit.
func editor() sim.Player {
	step := 0
	return sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		if step++; step > 1 {
			return sim.Text("Done."), nil
		}
		input := json.RawMessage(`{"path":"greeting.txt","old":"Hello","new":"Good morning"}`)
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: "edit_file", Args: input}}}, nil
	})
}
