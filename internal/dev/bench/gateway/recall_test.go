package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// Where memory is offered, the model asks it after its text, and the answers
// to both requests together are the step's; elsewhere one answer is.
func TestPieces(t *testing.T) {
	d := new(dummy)
	ask := func(body string) (*protocol.Reply, *httptest.ResponseRecorder) {
		r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
		r.Header.Set(headerPieces, "1")
		r.Header.Set(headerStep, "5")
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return read(t, anthropic.Codec, true, w.Body.Bytes()), w
	}
	want, err := anthropic.Codec.DecodeMessage(assistant(furl.FormatAnthropic, 5)[0])
	if err != nil {
		t.Fatal(err)
	}
	want.Seal()
	whole, w := ask(`{}`)
	if whole.Messages[0].Seal(); whole.Messages[0].Digest != want.Digest || w.Header().Get(headerAsked) != "" {
		t.Errorf("without memory the answer is %s", whole.Messages[0].Raw)
	}
	first, w := ask(`{"tools":[{"name":"memory_search"}]}`)
	called := first.Messages[0].Blocks[len(first.Messages[0].Blocks)-1]
	if w.Header().Get(headerAsked) == "" || called.Name != "memory_search" || called.ID == "" {
		t.Fatalf("with memory the first answer is %s", first.Messages[0].Raw)
	}
	second, w := ask(`{"tools":[{"name":"memory_search"}],"messages":["` + called.ID + `"]}`)
	if len(second.Messages[0].Blocks) != 1 || second.Messages[0].Blocks[0].ID != callID(5) || w.Header().Get(headerAsked) != "" {
		t.Errorf("the second answer is %s", second.Messages[0].Raw)
	}
	joined := slices.Concat(first.Messages[0].Blocks[:len(first.Messages[0].Blocks)-1], second.Messages[0].Blocks)
	for i, b := range want.Blocks {
		if j := joined[i]; j.Kind != b.Kind || j.Text != b.Text || j.Name != b.Name || j.ID != b.ID {
			t.Errorf("block %d is %+v, want %+v", i, j, b)
		}
	}
}

// The longest way of a piece counts, and a client must not see what the model
// asked memory.
func TestReadPieces(t *testing.T) {
	line := func(ago time.Duration) []byte {
		return event("x", `{"delta":{},%s%d}`, sentField, time.Now().Add(-ago).UnixNano())
	}
	s := sample{piece: unmeasured}
	if err := s.readPieces(bytes.NewReader(slices.Concat(line(time.Minute), line(0)))); err != nil || s.piece < time.Minute || s.piece > 2*time.Minute {
		t.Errorf("%s, %v", s.piece, err)
	}
	s = sample{piece: unmeasured}
	if err := s.readPieces(strings.NewReader("data: {}\n\n")); err != nil || s.piece != unmeasured {
		t.Errorf("nothing was sent, and took %s, %v", s.piece, err)
	}
	if err := s.readPieces(strings.NewReader(`data: {"name":"memory_search"}`)); err == nil {
		t.Error("a call of furl's is the client's to see")
	}
}
