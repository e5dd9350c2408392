package openai

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/protocol"
)

// logOf records the messages of a request one by one.
func logOf(t testing.TB, req *protocol.Request) *furl.Log {
	t.Helper()
	log := furl.NewLog()
	for i := range req.Messages {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, &req.Messages[i]); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// reduce hides something at random: a run of units under a marker, results
// and arguments by texts, or thinking.
func reduce(rng *rand.Rand, v *furl.View) *furl.Reduction {
	r := &furl.Reduction{Stage: "test"}
	var units []furl.Unit
	for _, u := range v.Units {
		if !u.Protected && u.Kind != furl.UnitSystem {
			units = append(units, u)
		}
	}
	if n := len(units); n > 0 && rng.IntN(3) == 0 {
		from := rng.IntN(n)
		some := units[from:min(n, from+1+rng.IntN(4))]
		note := furl.TextMessage(furl.RoleUser, fmt.Sprintf("[%d units hidden]", len(some)))
		r.Items = append(r.Items, furl.Item{Spans: v.Spans(some...), Show: furl.Mark{Messages: []*furl.Message{note}}})
		return r
	}
	for _, u := range units {
		for _, sb := range u.Blocks {
			at := []furl.Span{{First: sb.Pos, Last: sb.Pos}}
			if sb.Pos.Msg == 0 || rng.IntN(4) > 0 {
				continue
			}
			switch sb.Block.Kind {
			case furl.KindResult, furl.KindImage, furl.KindDocument:
				r.Items = append(r.Items, furl.Item{Spans: at, Show: furl.In{Text: "[masked]", Tokens: 5}})
			case furl.KindCall:
				r.Items = append(r.Items, furl.Item{Spans: at, Show: furl.In{Text: `{"path":"[shortened]"}`, Tokens: 9}})
			case furl.KindThinking:
				r.Items = append(r.Items, furl.Item{Spans: at, Show: furl.Gone{}})
			}
		}
	}
	return r
}

// X1: whatever is hidden, the provider accepts the resulting request, both
// applied to the client's body and encoded from the log.
func checkViews(t *testing.T, c protocol.Codec, body []byte, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	req := request(t, c, string(body))
	// If the whole request is invalid, the one encoded from the log is too.
	valid := c.Validate(req, furl.Model{}) == nil
	of := ReasoningOf(req.Messages)
	log := logOf(t, req)
	for round := range 12 {
		v := log.State().View(furl.Model{})
		sent, err := c.EncodeRequest(req, v)
		if err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		var elems []json.RawMessage
		field := "input"
		if c == Chat {
			field = "messages"
			elems, err = EncodeChat(v)
		} else {
			elems, err = EncodeResponses(v)
		}
		if err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		var texts []string
		for _, e := range elems {
			texts = append(texts, string(e))
		}
		rendered := `{"` + field + `":[` + strings.Join(texts, ",") + `]}`
		for _, b := range []string{string(sent), rendered} {
			got := request(t, c, b)
			if err := c.Validate(got, furl.Model{}); err != nil && valid {
				t.Fatalf("seed %d round %d: %v", seed, round, err)
			}
			if err := CheckReasoning(got.Messages, of); err != nil && c == Responses {
				t.Fatalf("seed %d round %d: %v", seed, round, err)
			}
		}
		if round == 0 && string(sent) != string(body) {
			t.Fatalf("seed %d: nothing is hidden, but the body changed", seed)
		}
		if r := reduce(rng, v); len(r.Items) > 0 {
			if _, err := log.Append(log.Head(), time.Time{}, furl.Furl, r); err != nil {
				t.Fatalf("seed %d round %d: %v", seed, round, err)
			}
		}
	}
}

func TestViewsAreValid(t *testing.T) {
	for _, c := range []protocol.Codec{Chat, Responses} {
		t.Run("X1 "+string(c.Format()), func(t *testing.T) {
			for seed := range uint64(20) {
				checkViews(t, c, history(c, 10_000), seed)
			}
		})
	}
	t.Run("X1 reasoning", func(t *testing.T) {
		items := append(append([]string{}, steps[:11]...), steps[12:]...) // without the item that needs its id
		for seed := range uint64(200) {
			checkViews(t, Responses, []byte(`{"input":[`+strings.Join(items, ",")+`]}`), seed)
		}
	})
}

func TestViewsOfRecordingsAreValid(t *testing.T) {
	recordings.Dir(t)
	t.Run("X1 Codex", func(t *testing.T) {
		for file, body := range rollouts(t) {
			if strings.HasPrefix(file, "33-") {
				continue // calls without results
			}
			checkViews(t, Responses, body, 1)
		}
	})
	t.Run("X1 tau-bench", func(t *testing.T) {
		for i, body := range dialogues(t) {
			if i%20 == 0 {
				checkViews(t, Chat, body, uint64(i))
			}
		}
	})
}
