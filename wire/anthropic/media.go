package anthropic

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/imagesize"
	"github.com/furlhq/furl/internal/rawjson"
)

// readMedia describes the source of an image or document. Its digest is of the
// bytes that carry the content: the base64 text, the URL, the file's id, or
// for other sources the whole source.
func readMedia(kind furl.Kind, source []byte) furl.Media {
	f := readFields(rawjson.NewReader(source))
	m := furl.Media{Kind: kind, Type: rawjson.Unquote(f.mediaType)}
	content := source
	switch f.typ {
	case "base64":
		content = inside(f.data)
		m.Width, m.Height = imageSize(content)
	case "url":
		content = inside(f.url)
	case "file":
		content = inside(f.fileID)
	}
	m.Bytes = len(content)
	m.Digest = furl.DigestOf(content)
	return m
}

// imageSize reads the size in pixels out of the header of a base64 image. Most
// have it in the first kilobytes; only a JPEG may hide it behind half a
// megabyte of metadata.
func imageSize(base64 []byte) (width, height int) {
	const little, much = 4 << 10, 513 << 10
	for _, n := range [...]int{little, much} {
		head := string(base64[:min(n, len(base64))])
		// Some JSON writers escape the slash, which base64 is full of.
		w, h, mime := imagesize.Of(strings.ReplaceAll(head, `\/`, `/`))
		if w > 0 || mime != "image/jpeg" || n > len(base64) {
			return w, h
		}
	}
	return 0, 0
}

// readDocument fills in the words and media of a document block.
func readDocument(b *furl.Block, f fields, depth int) {
	b.Media = []furl.Media{readMedia(furl.KindDocument, f.source)}
	texts := []string{rawjson.Unquote(f.title), rawjson.Unquote(f.context)}
	source := readFields(rawjson.NewReader(f.source))
	switch source.typ {
	case "text":
		texts = append(texts, rawjson.Unquote(source.data))
		b.Media[0].Bytes = 0 // its words are in Text and are counted there
	case "content":
		texts = append(texts, readParts(b, source.content, depth+1)...)
		b.Media[0].Bytes = 0
	}
	b.Text = joinLines(texts...)
}
