package sqlite

import (
	"encoding/binary"
	"io"
	"os"
)

// IsStore reports whether a file is a store of furl, by the application id in the header
// of its database (https://www.sqlite.org/fileformat2.html, 1.3).
func IsStore(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var header [72]byte
	if _, err := io.ReadFull(f, header[:]); err != nil {
		return false
	}
	return string(header[:16]) == "SQLite format 3\x00" && binary.BigEndian.Uint32(header[68:]) == applicationID
}
