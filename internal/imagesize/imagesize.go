// Package imagesize reads the width and height of an image out of its header.
// Providers bill images by their pixels, so a codec wants these two numbers
// and nothing else: no pixel is decoded, and however large the image, only a
// bounded piece of its beginning is looked at.
package imagesize

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

const (
	// headBytes hold the size in PNG, GIF and WebP files and in most JPEGs.
	headBytes = 768
	// maxBytes is how far a JPEG is followed: its size follows
	// profiles and thumbnails of up to 64 KB each.
	maxBytes = 384 << 10
	// maxSide is the longest side that is believed; longer ones are called
	// unknown. No provider takes images of a tenth of it.
	maxSide = 1 << 20
)

// Of gives the size in pixels and the media type of a PNG, JPEG, GIF or WebP
// image in base64, standard or URL-safe, padded or not. What cannot be told
// is zero or empty: both sides are zero for a broken or cut header, the type
// is empty for any other kind of file.
func Of(b64 string) (w, h int, mime string) {
	b := decode(b64, headBytes)
	switch {
	case hasPrefix(b, "\x89PNG\r\n\x1a\n"):
		w, h = pngSize(b)
		mime = "image/png"
	case hasPrefix(b, "GIF87a"), hasPrefix(b, "GIF89a"):
		w, h = gifSize(b)
		mime = "image/gif"
	case hasPrefix(b, "RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP":
		w, h = webpSize(b)
		mime = "image/webp"
	case hasPrefix(b, "\xff\xd8\xff"):
		mime = "image/jpeg"
		var found bool
		if w, h, found = jpegSize(b); !found && len(b) >= headBytes {
			w, h, _ = jpegSize(decode(b64, maxBytes))
		}
	}
	if w <= 0 || h <= 0 || w > maxSide || h > maxSide {
		w, h = 0, 0
	}
	return w, h, mime
}

// decode decodes at least the first n bytes of a base64 text, or as many as
// there are before it ends or breaks.
func decode(b64 string, n int) []byte {
	if most := n * 4 / 3; len(b64) > most {
		b64 = b64[:most]
	}
	b64 = strings.TrimRight(b64, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(b64, "-_") {
		enc = base64.RawURLEncoding
	}
	b := make([]byte, enc.DecodedLen(len(b64)))
	got, _ := enc.Decode(b, []byte(b64)) // what came before the fault is enough
	return b[:got]
}

func hasPrefix(b []byte, magic string) bool {
	return len(b) >= len(magic) && string(b[:len(magic)]) == magic
}

// pngSize reads the first chunk, which the format demands to be IHDR.
func pngSize(b []byte) (w, h int) {
	if len(b) < 24 || string(b[12:16]) != "IHDR" {
		return 0, 0
	}
	return side(binary.BigEndian.Uint32(b[16:])), side(binary.BigEndian.Uint32(b[20:]))
}

func side(n uint32) int {
	if n > maxSide {
		return 0
	}
	return int(n)
}

// gifSize reads the logical screen.
func gifSize(b []byte) (w, h int) {
	if len(b) < 10 {
		return 0, 0
	}
	return int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
}

// webpSize reads the first chunk: lossy, lossless or extended.
func webpSize(b []byte) (w, h int) {
	if len(b) < 30 {
		return 0, 0
	}
	switch string(b[12:16]) {
	case "VP8 ":
		if string(b[23:26]) != "\x9d\x01\x2a" {
			return 0, 0
		}
		return int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		if b[20] != 0x2f {
			return 0, 0
		}
		bits := binary.LittleEndian.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		return (int(b[24]) | int(b[25])<<8 | int(b[26])<<16) + 1, (int(b[27]) | int(b[28])<<8 | int(b[29])<<16) + 1
	}
	return 0, 0
}

// jpegSize walks the segments to the first frame header. found is false when b
// ends before it; a file that breaks or turns to picture data without one has
// no size and is not worth reading on.
func jpegSize(b []byte) (w, h int, found bool) {
	for i := 2; ; {
		for i < len(b) && b[i] == 0xff { // fill bytes may be before a marker
			i++
		}
		if i == 2 {
			return 0, 0, true // no marker where one must be
		}
		if i+3 > len(b) {
			return 0, 0, false
		}
		marker, length := b[i], int(binary.BigEndian.Uint16(b[i+1:]))
		switch {
		case marker == 0xd9 || marker == 0xda || length < 2:
			return 0, 0, true
		case 0xc0 <= marker && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if i+8 > len(b) {
				return 0, 0, false
			}
			return int(binary.BigEndian.Uint16(b[i+6:])), int(binary.BigEndian.Uint16(b[i+4:])), true
		}
		i += 1 + length
		if i >= len(b) {
			return 0, 0, false
		}
		if b[i] != 0xff {
			return 0, 0, true
		}
	}
}
