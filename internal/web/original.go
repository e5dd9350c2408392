package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
)

// showPart shows the body of a folded part of the transcript.
func (p *Page) showPart(v *visit) error {
	var path []furl.Record
	var reduction furl.Seq
	err := v.atMoment(func(m *moment) error {
		if r := m.reductionAt(v.r.FormValue("at")); r != nil {
			path, reduction = m.snap.log.Path(m.state.Head()), r.Seq
			return nil
		}
		pos, msg, b, err := v.blockAt(m)
		if err != nil {
			return err
		}
		part := m.part(pos, msg, b)
		v.render(http.StatusOK, "partbody", &part)
		return nil
	})
	if err != nil || reduction == 0 {
		return err
	}
	return v.showLost(path, reduction) // without the lock: it reads the whole session
}

// original responds with the text of a block as a file to download: the bytes as they were
// recorded.
func (p *Page) original(v *visit) error {
	var text, name string
	err := v.atMoment(func(m *moment) error {
		pos, msg, b, err := v.blockAt(m)
		if err != nil {
			return err
		}
		part := m.part(pos, msg, b)
		text, name = part.Text(), fmt.Sprintf("%s-%s.txt", v.s.ID(), part.At)
		return nil
	})
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	v.send(http.StatusOK, []byte(text))
	return nil
}

// maxPicture is the size of the largest image that the page shows, in bytes.
const maxPicture = 20 << 20

// showMedia responds with an image of a block.
func (p *Page) showMedia(v *visit) error {
	n, err := strconv.Atoi(v.r.FormValue("n"))
	if err != nil || n < 0 {
		return badRequest("invalid image number %.20q", v.r.FormValue("n"))
	}
	var raw []byte
	err = v.atMoment(func(m *moment) error {
		_, msg, b, err := v.blockAt(m)
		if err != nil {
			return err
		}
		if raw = msg.Raw; b.End > b.Start && b.End <= len(raw) {
			raw = raw[b.Start:b.End]
		}
		return nil
	})
	if err != nil {
		return err
	}
	image := pictureIn(raw, n)
	mediaType := http.DetectContentType(image)
	if !isPicture(mediaType) {
		return notFound("image %d is not recorded, or is not in a format that browsers show", n)
	}
	h := v.w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=3600")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(image) // an error means that the browser has disconnected
	return nil
}

// pictureIn returns image n of a block in any wire format: the base64 text in "data"
// beside a media type, or a data URL. It returns nil if there is none.
func pictureIn(raw []byte, n int) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	var found []string
	for len(found) <= n {
		token, err := d.Token()
		if err != nil {
			break
		}
		text, ok := token.(string)
		if !ok {
			continue
		}
		if _, data, ok := strings.Cut(text, ";base64,"); ok && strings.HasPrefix(text, "data:image/") {
			found = append(found, data)
		} else if text == "data" {
			if next, err := d.Token(); err == nil {
				if data, ok := next.(string); ok && isEncodedPicture(data) {
					found = append(found, data)
				}
			}
		}
	}
	if n >= len(found) || base64.StdEncoding.DecodedLen(len(found[n])) > maxPicture {
		return nil
	}
	image, err := base64.StdEncoding.DecodeString(strings.TrimSpace(found[n]))
	if err != nil {
		return nil
	}
	return image
}

// isEncodedPicture reports whether base64 text starts like an image that is shown.
func isEncodedPicture(data string) bool {
	head, err := base64.StdEncoding.DecodeString(data[:min(len(data), 64)/4*4])
	return err == nil && isPicture(http.DetectContentType(head))
}

// mediaAddress returns the address of an image of a block, "" if it has none.
func (m *moment) mediaAddress(at string, n int) string {
	if at == "" {
		return ""
	}
	return fmt.Sprintf("%s/sessions/%s/media?at=%s&n=%d", prefix, m.s.ID(), at, n)
}
