package imagesize

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// picture is an image of the given size that does not compress to nothing.
func picture(w, h int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	for i := range m.Pix {
		m.Pix[i] = byte(i % 2)
	}
	return m
}

func encoded(t testing.TB, format string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, picture(w, h))
	case "gif":
		err = gif.Encode(&b, picture(w, h), nil)
	case "jpeg":
		err = jpeg.Encode(&b, picture(w, h), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withProfile puts n application segments of the greatest length in front of
// a JPEG's own, as a colour profile does.
func withProfile(jpg []byte, n int) []byte {
	out := []byte("\xff\xd8")
	for range n {
		out = append(out, "\xff\xe2\xff\xff"...)
		out = append(out, make([]byte, 0xffff-2)...)
	}
	return append(out, jpg[2:]...)
}

// webp makes the header of a WebP file with the given first chunk.
func webpFile(chunk string, body []byte) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WEBP" + chunk)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	return append(b, make([]byte, 16)...)
}

func TestOf(t *testing.T) {
	jpg := encoded(t, "jpeg", 640, 35)
	lossless := binary.LittleEndian.AppendUint32([]byte{0x2f}, 999|599<<14)
	tests := []struct {
		name string
		file []byte
		w, h int
		mime string
	}{
		{"PNG", encoded(t, "png", 1024, 768), 1024, 768, "image/png"},
		{"PNG of one pixel", encoded(t, "png", 1, 1), 1, 1, "image/png"},
		{"GIF", encoded(t, "gif", 320, 200), 320, 200, "image/gif"},
		{"JPEG", jpg, 640, 35, "image/jpeg"},
		{"JPEG behind a small profile", append([]byte("\xff\xd8\xff\xe1\x00\x08abcdef"), jpg[2:]...), 640, 35, "image/jpeg"},
		{"JPEG with fill bytes", append([]byte("\xff\xd8\xff\xff\xff"), jpg[3:]...), 640, 35, "image/jpeg"},
		{"JPEG behind a large profile", withProfile(jpg, 3), 640, 35, "image/jpeg"},
		{"JPEG behind more than is looked at", withProfile(jpg, 7), 0, 0, "image/jpeg"},
		{"JPEG that turns to picture data", []byte("\xff\xd8\xff\xda\x00\x08abcdef"), 0, 0, "image/jpeg"},
		{"WebP, lossy", webpFile("VP8 ", []byte("\x00\x00\x00\x9d\x01\x2a\x40\x01\xf0\x00")), 320, 240, "image/webp"},
		{"WebP, lossless", webpFile("VP8L", lossless), 1000, 600, "image/webp"},
		{"WebP, extended", webpFile("VP8X", []byte("\x00\x00\x00\x00\xff\x07\x00\x37\x04\x00")), 2048, 1080, "image/webp"},
		{"WebP of an unknown kind", webpFile("VP9 ", make([]byte, 20)), 0, 0, "image/webp"},
		{"PNG with an impossible size", append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xff\xff\xff\x00\x00\x00\x10"), 0), 0, 0, "image/png"},
		{"PNG cut short", encoded(t, "png", 9, 9)[:20], 0, 0, "image/png"},
		{"PDF", []byte("%PDF-1.7 and so on"), 0, 0, ""},
		{"nothing", nil, 0, 0, ""},
	}
	encodings := map[string]*base64.Encoding{
		"standard": base64.StdEncoding, "standard, not padded": base64.RawStdEncoding,
		"URL-safe": base64.URLEncoding, "URL-safe, not padded": base64.RawURLEncoding,
	}
	for _, tt := range tests {
		for name, enc := range encodings {
			w, h, mime := Of(enc.EncodeToString(tt.file))
			if w != tt.w || h != tt.h || mime != tt.mime {
				t.Errorf("%s in %s base64: got %d×%d %q, want %d×%d %q", tt.name, name, w, h, mime, tt.w, tt.h, tt.mime)
			}
		}
	}
}

// A large image costs no more to look at than a small one.
func TestOfIsBounded(t *testing.T) {
	small := base64.StdEncoding.EncodeToString(encoded(t, "png", 64, 64))
	large := small + strings.Repeat("A", 8<<20)
	if n := testing.AllocsPerRun(10, func() { Of(large) }); n > 3 {
		t.Errorf("%v allocations for 8 MB behind the header, want at most 3", n)
	}
	if w, h, _ := Of(large); w != 64 || h != 64 {
		t.Errorf("got %d×%d, want 64×64", w, h)
	}
}

func FuzzOf(f *testing.F) {
	for _, format := range []string{"png", "gif", "jpeg"} {
		f.Add(encoded(f, format, 7, 5))
	}
	f.Add(webpFile("VP8X", make([]byte, 10)))
	f.Add([]byte("\xff\xd8\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, file []byte) {
		b64 := base64.StdEncoding.EncodeToString(file)
		w, h, mime := Of(b64)
		if w < 0 || h < 0 || w > maxSide || h > maxSide || (w == 0) != (h == 0) {
			t.Fatalf("size %d×%d", w, h)
		}
		if mime == "" && w != 0 {
			t.Fatal("a size without a type")
		}
		cfg, format, err := image.DecodeConfig(bytes.NewReader(file))
		if err == nil && "image/"+format == mime && cfg.Width <= maxSide && cfg.Height <= maxSide && w != 0 {
			if w != cfg.Width || h != cfg.Height {
				t.Fatalf("got %d×%d, package image says %d×%d (%s)", w, h, cfg.Width, cfg.Height, format)
			}
		}
	})
}
