package gemini

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/imagesize"
	"github.com/furlhq/furl/internal/rawjson"
)

// readMedia describes inlineData or fileData. The digest covers the base64 text or the
// URI.
func readMedia(data []byte) furl.Media {
	m := furl.Media{Kind: furl.KindDocument}
	content := data
	r := rawjson.NewReader(data)
	if r.Kind() == '{' {
		for key := range fields(r, nil) {
			switch key {
			case "mimeType":
				m.Type, _ = r.String()
			case "data", "fileUri":
				v := r.Value()
				content = v.Inside()
				if key == "data" {
					m.Width, m.Height = imageSize(content)
				}
			}
		}
	}
	if strings.HasPrefix(m.Type, "image/") {
		m.Kind = furl.KindImage
	} else {
		m.Width, m.Height = 0, 0
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
