package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name       string // path in the archive, with slashes
	source     string // file on disk; if "", text is the content
	text       []byte
	executable bool
}

func (e entry) open() (io.ReadCloser, int64, error) {
	if e.source == "" {
		return io.NopCloser(bytes.NewReader(e.text)), int64(len(e.text)), nil
	}
	f, err := os.Open(e.source)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func (e entry) mode() os.FileMode {
	if e.executable {
		return 0o755
	}
	return 0o644
}

// archiveName is the name of a system's archive without its extension.
func (r *release) archiveName(s system) string {
	return fmt.Sprintf("furl-%s-%s-%s", r.version, s.os, s.arch)
}

// archiveFile is the name of a system's archive.
func (r *release) archiveFile(s system) string {
	if s.os == "windows" {
		return r.archiveName(s) + ".zip"
	}
	return r.archiveName(s) + ".tar.gz"
}

// archive writes the archive for a system: the binary, licences, manual pages,
// completion scripts and service files.
func (r *release) archive(s system) error {
	top := r.archiveName(s) + "/"
	shared := filepath.Join(r.stage, "shared")
	entries := []entry{{name: top + s.program(), source: r.binary(s), executable: true}}
	names := []string{"LICENSE", "THIRD-PARTY-LICENSES.txt", "README.md", "completions/_furl", "completions/furl.bash", "completions/furl.fish"}
	pages, err := filepath.Glob(filepath.Join(shared, "man", "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if s.os != "windows" {
			names = append(names, "man/"+filepath.Base(page))
		}
	}
	for _, name := range names {
		entries = append(entries, entry{name: top + name, source: filepath.Join(shared, filepath.FromSlash(name))})
	}
	out := filepath.Join(r.out, r.archiveFile(s))
	if s.os == "windows" {
		return create(out, func(w io.Writer) error { return writeZip(w, entries, r.time, r.level()) })
	}
	return create(out, func(w io.Writer) error { return writeTar(w, entries, r.time, r.level()) })
}

// level is the level of compression.
func (r *release) level() int {
	if r.fast {
		return flate.BestSpeed
	}
	return flate.DefaultCompression
}

// create writes a file, and reports errors of closing it.
func create(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = write(f)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeTar writes a compressed tar archive. The order of the entries does not matter.
func writeTar(w io.Writer, entries []entry, at time.Time, level int) error {
	z, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, e := range sorted(entries) {
		in, size, err := e.open()
		if err != nil {
			return err
		}
		err = t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: size, Mode: int64(e.mode()), ModTime: at, Format: tar.FormatPAX})
		if err == nil {
			_, err = io.Copy(t, in)
		}
		in.Close()
		if err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func writeZip(w io.Writer, entries []entry, at time.Time, level int) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, level) })
	for _, e := range sorted(entries) {
		in, _, err := e.open()
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode())
		out, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.Copy(out, in)
		}
		in.Close()
		if err != nil {
			return err
		}
	}
	return z.Close()
}

func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
}

// sums writes SHA256SUMS, in the format of sha256sum.
func sums(dir string) error {
	files, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, f := range files {
		sum, err := digest(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sum, f.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), out.Bytes(), 0o644)
}

// digest returns the SHA-256 of a file.
func digest(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
