package transcript

import (
	"slices"
	"strings"
	"testing"
)

// repliesIn are the ids of the replies in a text.
func repliesIn(t *testing.T, text string) (ids []ReplyID) {
	t.Helper()
	rec, err := Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rec.Sessions {
		for _, id := range s.Replies() {
			ids = append(ids, id)
		}
	}
	return ids
}

// opencode copies messages into a fork with other ids, the same times, and without cost.
func TestRepliesOfCopies(t *testing.T) {
	text := fixtures(t)["opencode.json"]
	fork := strings.NewReplacer("ses_", "ses_f", "msg_", "msg_f", "prt_", "prt_f").Replace(string(text))
	ids := repliesIn(t, string(text))
	if len(ids) == 0 || !slices.Equal(ids, repliesIn(t, fork)) {
		t.Error("the replies of a fork are not those of its parent")
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			t.Errorf("two replies have the id %x", id)
		}
	}
	later := strings.ReplaceAll(string(text), `"created": 17`, `"created": 18`)
	if later == string(text) {
		later = strings.ReplaceAll(string(text), `"created":17`, `"created":18`)
	}
	for _, id := range repliesIn(t, later) {
		if slices.Contains(ids, id) {
			t.Error("replies of other times have the same ids")
			break
		}
	}
}

// In all fixtures, different replies have different ids.
func TestRepliesDiffer(t *testing.T) {
	for name, text := range fixtures(t) {
		rec, err := Read(name, strings.NewReader(string(text)))
		if err != nil || name == "tau2-runs.jsonl" { // it has a run twice
			continue
		}
		seen := make(map[ReplyID]bool)
		for _, s := range rec.Sessions {
			for seq, id := range s.Replies() {
				if seen[id] {
					t.Errorf("%s: the reply of record %d of session %s is there twice", name, seq, s.ID)
				}
				seen[id] = true
			}
		}
	}
}

// Continue copies messages into a fork without times, and does not name its origin. From the first call on, the
// replies of both are the same; other answers to the same question are not.
func TestRepliesWithoutTimes(t *testing.T) {
	list := fixtures(t)
	ids, fork := repliesIn(t, string(list["continue.json"])), repliesIn(t, string(list["continue-fork.json"]))
	if len(ids) != 5 || len(fork) != 6 || !slices.Equal(ids, fork[:5]) || slices.Contains(ids, fork[5]) {
		t.Errorf("%x are not the first of %x", ids, fork)
	}
	const plain = `{"sessionId":"a","workspaceDirectory":"/w","title":"t","history":[{"message":{"role":"user","content":"Hi."}},{"message":{"role":"assistant","content":"Hi."}}]}`
	if slices.Equal(repliesIn(t, plain), repliesIn(t, strings.Replace(plain, `"a"`, `"b"`, 1))) {
		t.Error("the same words in two sessions are one reply")
	}
}
