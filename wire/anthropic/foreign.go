package anthropic

import (
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// findSources finds at most n images and documents in a block of another
// format and converts each to a block of this one. OpenAI's formats contain
// them as data URLs or links in fields of a few names. Media that Anthropic
// does not accept, such as other types, are skipped.
func findSources(raw []byte, n int) [][]byte {
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
	case depth > maxParts*2 || len(s.found) == s.most:
		r.Skip()
	case kind == '{':
		for key := range r.Fields() {
			s.walk(r, string(key), depth+1)
		}
	case kind == '[':
		for range r.Elements() {
			s.walk(r, name, depth+1)
		}
	case kind == '"':
		switch name {
		case "url", "image_url", "file_url", "file_data":
			url, _ := r.String()
			if block := sourceBlock(url, strings.HasPrefix(name, "file")); block != nil {
				s.found = append(s.found, block)
			}
		default:
			r.Skip()
		}
	default:
		r.Skip()
	}
}

// sourceBlock returns an image or document block for a link or a data URL.
func sourceBlock(url string, document bool) []byte {
	kind := "image"
	if document {
		kind = "document"
	}
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		out := append([]byte(`{"type":"`), kind...)
		out = append(out, `","source":{"type":"url","url":`...)
		return append(rawjson.AppendString(out, url), "}}"...)
	}
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return nil
	}
	mime, data, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return nil
	}
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		kind = "image"
	case "application/pdf":
		kind = "document"
	default:
		return nil
	}
	out := append([]byte(`{"type":"`), kind...)
	out = append(out, `","source":{"type":"base64","media_type":"`...)
	out = append(append(out, mime...), `","data":`...)
	return append(rawjson.AppendString(out, data), "}}"...)
}
