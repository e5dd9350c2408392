package openai

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/imagesize"
	"github.com/furlhq/furl/internal/rawjson"
)

// stringBytes returns the decoded bytes of a JSON string. It shares memory
// with the string if there is no escape, as in base64. It returns nil for
// other values.
func stringBytes(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		return []byte(rawjson.Unquote(raw))
	}
	return raw[1 : len(raw)-1]
}

// stringLen is the length of a JSON string's bytes on the wire, without
// quotes.
func stringLen(raw []byte) int {
	if len(raw) < 2 || raw[0] != '"' {
		return 0
	}
	return len(raw) - 2
}

// imageHead is the largest part of an image's base64 that is searched for its
// size.
const imageHead = 512 << 10

// mediaOf describes the media of a URL or a data URL, a JSON string. For a
// data URL, type, length, digest and size are those of its data; for other
// URLs, length and digest are those of the URL, and the rest is unknown.
func mediaOf(kind furl.Kind, raw []byte) furl.Media {
	m := furl.Media{Kind: kind}
	url := stringBytes(raw)
	head, data, found := bytes.Cut(url, []byte{','})
	if !found || !bytes.HasPrefix(head, []byte("data:")) {
		m.Bytes, m.Digest = len(url), furl.DigestOf(url)
		return m
	}
	typ, params, _ := strings.Cut(string(head[len("data:"):min(len(head), 256)]), ";")
	m.Type, m.Bytes, m.Digest = typ, len(data), furl.DigestOf(data)
	if kind == furl.KindImage && strings.HasSuffix(params, "base64") {
		var sniffed string
		m.Width, m.Height, sniffed = imagesize.Of(string(data[:min(len(data), imageHead)]))
		if m.Type == "" {
			m.Type = sniffed
		}
	}
	return m
}

// mediaNote describes an image or a document where only text is allowed.
func mediaNote(m furl.Media) string {
	var b strings.Builder
	b.WriteByte('[')
	b.WriteString(m.Kind.String())
	if m.Type != "" {
		b.WriteString(", " + m.Type)
	}
	if m.Width > 0 && m.Height > 0 {
		fmt.Fprintf(&b, ", %d×%d pixels", m.Width, m.Height)
	}
	if m.Bytes > 0 {
		fmt.Fprintf(&b, ", %d bytes", m.Bytes)
	}
	b.WriteByte(']')
	return b.String()
}

// base64Image describes an image that is bare base64 in a JSON string.
func base64Image(raw []byte) furl.Media {
	data := stringBytes(raw)
	m := furl.Media{Kind: furl.KindImage, Bytes: len(data), Digest: furl.DigestOf(data)}
	m.Width, m.Height, m.Type = imagesize.Of(string(data[:min(len(data), imageHead)]))
	return m
}
