package embeddings

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/embedtest"
)

func TestEmbed(t *testing.T) {
	s := embedtest.New(t)
	c := New(s.URL+"/", "m", &Options{Key: "sk-secret", Batch: 3, Wait: time.Microsecond})
	var texts []string
	for i := range 7 {
		texts = append(texts, fmt.Sprintf("text number %d", i))
	}
	s.Fail(503, 429)
	got, err := c.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if !slices.Equal(v, embedtest.Vector(texts[i])) {
			t.Errorf("text %d has another vector", i)
		}
	}
	requests, asked, keys := s.Asked()
	if requests != 5 || !slices.Equal(asked, texts) || keys[0] != "Bearer sk-secret" {
		t.Errorf("%d requests for %q with %q", requests, asked, keys)
	}
	if v, err := c.Embed(t.Context(), nil); len(v) != 0 || err != nil {
		t.Errorf("no texts: %v, %v", v, err)
	}
}

func TestEmbedFails(t *testing.T) {
	s := embedtest.New(t)
	c := New(s.URL, "m", &Options{Key: "sk-secret", Retries: 2, Wait: time.Microsecond})
	s.Down(500)
	_, err := c.Embed(t.Context(), []string{"a"})
	if err == nil || !strings.Contains(err.Error(), "500") || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("error %v", err)
	}
	if n, _, _ := s.Asked(); n != 3 {
		t.Errorf("%d requests", n)
	}
	s.Down(401)
	if _, err = c.Embed(t.Context(), []string{"a"}); err == nil || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("error %v", err)
	}
	if n, _, _ := s.Asked(); n != 4 {
		t.Errorf("%d requests: a refusal was tried again", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Embed(ctx, []string{"a"}); err == nil {
		t.Error("no error after the end")
	}
	if _, err := New("http://127.0.0.1:1/v1", "m", &Options{Retries: -1}).Embed(t.Context(), []string{"a"}); err == nil {
		t.Error("no error without a server")
	}
}

// Invalid replies are errors.
func TestOddReplies(t *testing.T) {
	for _, reply := range []string{
		"", "{}", "[]", `{"data":[{"index":0,"embedding":[1]}]}`, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, `{"data":[{"index":-1,"embedding":[1]},{"index":1,"embedding":["x"]}]}`,
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(reply)) }))
		if v, err := New(h.URL, "m", nil).Embed(t.Context(), []string{"a", "b"}); err == nil {
			t.Errorf("%s gives %v", reply, v)
		}
		h.Close()
	}
}
