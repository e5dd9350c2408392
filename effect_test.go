package furl

import (
	"slices"
	"testing"
	"time"
)

func TestEffect(t *testing.T) {
	log := NewLog()
	add := func(body Body) {
		t.Helper()
		if m, ok := body.(*Message); ok {
			m.Blocks[0].Tokens = 10
		}
		if _, err := log.Append(log.Head(), time.Unix(int64(log.Len()), 0), Client, body); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		add(TextMessage(RoleUser, "go"))
		add(&Message{Role: RoleAssistant, Blocks: []Block{{Kind: KindCall, ID: "a", Name: "read", Args: []byte(`{}`)}}})
		add(&Message{Role: RoleTool, Blocks: []Block{{Kind: KindResult, ID: "a", Text: "héllo"}}})
		add(TextMessage(RoleAssistant, "done"))
	}
	truncation := func(from, to Seq) *Reduction {
		mark := Mark{Messages: []*Message{TextMessage(RoleUser, "hidden")}}
		return &Reduction{Stage: "truncate", Items: []Item{{Spans: []Span{{Pos{Msg: from}, Pos{Msg: to}}}, Show: mark}}}
	}
	e, err := log.State().Effect(truncation(2, 4))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.Messages, []Seq{2, 3, 4}) || e.Tokens != 30 || e.Blocks != 0 || !e.From.Equal(time.Unix(1, 0)) || !e.To.Equal(time.Unix(3, 0)) {
		t.Errorf("effect %+v", e)
	}
	add(truncation(2, 4))
	if e, err = log.State().Effect(truncation(2, 5)); err != nil || !slices.Equal(e.Messages, []Seq{5}) || e.Tokens != 10 {
		t.Errorf("what is hidden already counts again: %+v, %v", e, err)
	}
	if _, err := log.State().Effect(truncation(3, 3)); err == nil {
		t.Error("a mark may split a step")
	}
}
