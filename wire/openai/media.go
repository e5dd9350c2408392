package openai

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/imagesize"
	"github.com/furlhq/furl/internal/rawjson"
)

// stringBytes gives the bytes a JSON string stands for, sharing memory with it
// where there is no escape, as in base64; nil for anything but a string.
func stringBytes(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		return []byte(rawjson.Unquote(raw))
	}
	return raw[1 : len(raw)-1]
}

// stringLen is the length of a JSON string's bytes on the wire, without quotes.
func stringLen(raw []byte) int {
	if len(raw) < 2 || raw[0] != '"' {
		return 0
	}
	return len(raw) - 2
}

// imageHead is as much of an image's base64 as a look for its size may need.
const imageHead = 512 << 10

// mediaOf describes what a URL or a data URL, a JSON string, stands for. Of a
// data URL type, length, digest and size are those of the data in it; of any
// other the length and digest are the URL's own and the rest is unknown.
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

// mediaNote names an image or a document where only text may stand.
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

// base64Image describes an image that stands as bare base64 in a JSON string.
func base64Image(raw []byte) furl.Media {
	data := stringBytes(raw)
	m := furl.Media{Kind: furl.KindImage, Bytes: len(data), Digest: furl.DigestOf(data)}
	m.Width, m.Height, m.Type = imagesize.Of(string(data[:min(len(data), imageHead)]))
	return m
}
