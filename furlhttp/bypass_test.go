package furlhttp_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/session"
)

// A bypassed request is sent unchanged. If its images are too large for the provider, a
// note says so, unless the body is a stream, which is not kept.
func TestBypassedImages(t *testing.T) {
	var large bytes.Buffer
	if err := png.Encode(&large, image.NewGray(image.Rect(0, 0, 8001, 1))); err != nil {
		t.Fatal(err)
	}
	with := func(format string) string {
		return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":[`+format+`]}]}`, base64.StdEncoding.EncodeToString(large.Bytes()))
	}
	source := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`
	const note = "the provider may refuse this request: 1 image is wider or higher than 8000 pixels"
	for _, tt := range []struct {
		name, path, body, note string
		stream                 bool
		max                    int64
	}{
		{name: "too large an image", path: "/v1/messages", body: with(source), note: note},
		{name: "a stream", path: "/v1/messages", body: with(source), stream: true},
		{name: "a body above the limit", path: "/v1/messages", body: with(source), max: 100},
		{name: "another type", path: "/v1/messages", body: with(`{"type":"text","text":"an image: %s"}`)},
		{name: "not JSON", path: "/v1/messages", body: with(source)[1:]},
		{name: "another path", path: "/v1/models", body: with(source)},
	} {
		base := newProvided(strings.NewReader(whole))
		sent := ""
		tr := furlhttp.New(sessions(t, session.Options{}), &furlhttp.Options{MaxBody: tt.max, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			data, err := io.ReadAll(r.Body)
			if sent = string(data); err != nil {
				t.Error(err)
			}
			return base.RoundTrip(r)
		})})
		var body io.Reader = strings.NewReader(tt.body)
		if tt.stream {
			body = io.MultiReader(body)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://provider"+tt.path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(furlhttp.HeaderBypass, "true")
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get(furlhttp.HeaderNote); got != tt.note || sent != tt.body {
			t.Errorf("%s: note %q, want %q; sent unchanged: %v", tt.name, got, tt.note, sent == tt.body)
		}
	}
}
