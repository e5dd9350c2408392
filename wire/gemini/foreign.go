package gemini

import (
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// maxForeign is how deep the parts of another format's block are searched for media.
const maxForeign = 8

// findMedia finds at most n images and documents in a block of another
// format and converts each to a part of this one: base64 data as inlineData, and
// links as fileData. Others are skipped.
func findMedia(raw []byte, n int) [][]byte {
	if len(raw) == 0 || n == 0 {
		return nil
	}
	s := sources{most: n}
	s.walk(rawjson.NewReader(raw), "", 0)
	return s.found
}

type sources struct {
	most  int
	found [][]byte
}

func (s *sources) walk(r *rawjson.Reader, name string, depth int) {
	switch kind := r.Kind(); {
	case depth > maxForeign || len(s.found) >= s.most:
		r.Skip()
	case kind == '{':
		s.object(r, name, depth)
	case kind == '[':
		for range r.Elements() {
			s.walk(r, name, depth+1)
		}
	case kind == '"' && (name == "url" || name == "image_url" || name == "file_url" || name == "file_data"):
		// A data URL or a link of OpenAI's formats.
		url, _ := r.String()
		s.add(url)
	default:
		r.Skip()
	}
}

// object reads an object, which may be the source of an Anthropic block.
func (s *sources) object(r *rawjson.Reader, name string, depth int) {
	if name != "source" {
		for key := range r.Fields() {
			s.walk(r, string(key), depth+1)
		}
		return
	}
	source := r.Raw()
	field := func(name string) string { return rawjson.Unquote(rawjson.Field(source, name)) }
	switch field("type") {
	case "base64":
		s.inline(field("media_type"), field("data"))
	case "url":
		s.add(field("url"))
	}
}

func (s *sources) add(url string) {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		out := rawjson.AppendString([]byte(`{"fileData":{"fileUri":`), url)
		s.found = append(s.found, append(out, "}}"...))
		return
	}
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if mime, data, ok := strings.Cut(rest, ";base64,"); ok {
			s.inline(mime, data)
		}
	}
}

func (s *sources) inline(mime, data string) {
	if mime == "" || data == "" {
		return
	}
	out := rawjson.AppendString([]byte(`{"inlineData":{"mimeType":`), mime)
	out = rawjson.AppendString(append(out, `,"data":`...), data)
	s.found = append(s.found, append(out, "}}"...))
}
