package anthropic

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/imagesize"
	"github.com/furlhq/furl/internal/rawjson"
)

// readMedia describes the source of an image or document. The digest covers
// the bytes of the content: the base64 text, the URL, the file's id, or for
// other sources the whole source.
func readMedia(block *rawjson.Reader, kind furl.Kind, source rawjson.Value) furl.Media {
	r := rawjson.NewReader(source.Raw)
	f := readFields(r)
	block.Join(r)
	m := furl.Media{Kind: kind, Type: f.mediaType.Text()}
	content := source.Raw
	switch f.typ {
	case "base64":
		content = f.data.Inside()
		m.Width, m.Height = imageSize(content)
	case "url":
		content = f.url.Inside()
	case "file":
		content = f.fileID.Inside()
	}
	m.Bytes = len(content)
	m.Digest = furl.DigestOf(content)
	return m
}

// imageSize reads the size in pixels from the header of a base64 image. Most
// have it in the first kilobytes; only a JPEG may have it after up to half a
// megabyte of metadata.
func imageSize(base64 []byte) (width, height int) {
	const little, much = 4 << 10, 513 << 10
	for _, n := range [...]int{little, much} {
		head := string(base64[:min(n, len(base64))])
		// Some JSON encoders escape the slash, which is frequent in base64.
		w, h, mime := imagesize.Of(strings.ReplaceAll(head, `\/`, `/`))
		if w > 0 || mime != "image/jpeg" || n > len(base64) {
			return w, h
		}
	}
	return 0, 0
}

// readDocument sets the text and media of a document block.
func readDocument(block *rawjson.Reader, b *furl.Block, f fields, depth int) {
	b.Media = []furl.Media{readMedia(block, furl.KindDocument, f.source)}
	source := readFields(rawjson.NewReader(f.source.Raw))
	b.Text = joinLines(f.title.Text(), f.context.Text())
	switch source.typ {
	case "text":
		b.Text = joinLines(b.Text, source.data.Text())
		b.Media[0].Bytes = 0 // its text is in Text and is counted there
	case "content":
		r := rawjson.NewReader(source.content.Raw)
		content := readParts(r, source.content.Raw, depth+1)
		block.Join(r)
		content.addTo(b)
		b.Media[0].Bytes = 0
	}
}
