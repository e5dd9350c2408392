package recorded

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// importAll imports texts in order, each as a file of its own, with one importer.
func importAll(t *testing.T, im *Importer, texts ...string) (results []string) {
	t.Helper()
	for _, text := range texts {
		rec, err := transcript.Read("x.jsonl", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			line, err := im.Session(context.Background(), rec, s)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, line.Result)
		}
	}
	return results
}

// forkMeta are the originals of the sessions of a store, with the records of them.
type forkMeta struct {
	Of furl.SessionID
	At furl.Seq
}

func forksIn(t *testing.T, store storage.Store) map[furl.SessionID]forkMeta {
	t.Helper()
	all := make(map[furl.SessionID]forkMeta)
	for info, err := range store.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[info.Session] = forkMeta{info.ForkOf, info.ForkAt}
	}
	return all
}

func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "furl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// hitsOf returns the sessions and records of hits.
func hitsOf(t *testing.T, store storage.Store, req recall.Request) (list []string) {
	t.Helper()
	req.Limit, req.Excerpt = 50, -1
	found, err := recall.NewSearcher(store, nil).Search(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range found.Hits {
		list = append(list, fmt.Sprintf("%s/%d", h.Session, h.Pos.Msg))
	}
	slices.Sort(list)
	return list
}

// A recorded fork is a fork in the store, whichever of the files is imported first, and a search finds what it
// repeats in the original only.
func TestImportFork(t *testing.T) {
	for _, agent := range []struct {
		name string
		text forkText
	}{{"Claude Code", claudeText}, {"Codex", codexText}, {"pi", piText}} {
		t.Run(agent.name, func(t *testing.T) {
			parent, fork, second := agent.text("p", "", 0, 5), agent.text("fx", "p", 4, 1), agent.text("fyy", "p", 3, 2)
			want := map[furl.SessionID]forkMeta{"p": {}, "fx": {"p", 12}, "fyy": {"p", 9}}
			texts := []string{parent, fork, second}
			for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
				store := openStore(t)
				im := &Importer{Store: store, Merge: true}
				for _, i := range order {
					importAll(t, im, texts[i])
				}
				if got := forksIn(t, store); !cmp.Equal(got, want) {
					t.Errorf("imported in order %v: %s", order, cmp.Diff(want, got))
				}
				if got := importAll(t, &Importer{Store: store}, texts...); !cmp.Equal(got, []string{ImportedNothing, ImportedNothing, ImportedNothing}) {
					t.Errorf("imported again: %v", got)
				}
				if got := forksIn(t, store); !cmp.Equal(got, want) {
					t.Errorf("imported again: %s", cmp.Diff(want, got))
				}
				got := hitsOf(t, store, recall.Request{Text: "Task"})
				if want := []string{"fx/13", "fyy/10", "fyy/13", "p/1", "p/10", "p/13", "p/4", "p/7"}; !cmp.Equal(got, want) {
					t.Errorf("the search finds %v, want %v", got, want)
				}
				if got := hitsOf(t, store, recall.Request{Text: "Task 2 of p", Session: "fx"}); len(got) == 0 {
					t.Error("a search of the fork does not find what it repeats")
				}
			}
		})
	}
}

// The messages of a fork are found in it once its original is deleted.
func TestSearchAfterOriginalIsDeleted(t *testing.T) {
	store := openStore(t)
	importAll(t, &Importer{Store: store}, claudeText("p", "", 0, 2), claudeText("fx", "p", 2, 1))
	if got, want := hitsOf(t, store, recall.Request{Text: "Task"}), []string{"fx/7", "p/1", "p/4"}; !cmp.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if err := store.Delete(t.Context(), furl.SessionKey{Session: "p"}); err != nil {
		t.Fatal(err)
	}
	if got, want := hitsOf(t, store, recall.Request{Text: "Task"}), []string{"fx/1", "fx/4", "fx/7"}; !cmp.Equal(got, want) {
		t.Errorf("found %v without the original, want %v", got, want)
	}
}

// Claude Code's older versions continue a session under another id and name no parent. The replies show
// it. A session of the same words is not a fork.
func TestImportUnnamedFork(t *testing.T) {
	store := openStore(t)
	resumed := strings.ReplaceAll(claudeText("p", "", 0, 4), `"sessionId":"p"`, `"sessionId":"later"`)
	other := strings.ReplaceAll(claudeText("qq", "", 0, 4), "of qq", "of p")
	importAll(t, &Importer{Store: store}, claudeText("p", "", 0, 3), resumed, other)
	want := map[furl.SessionID]forkMeta{"p": {}, "later": {"p", 9}, "qq": {}}
	if got := forksIn(t, store); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
