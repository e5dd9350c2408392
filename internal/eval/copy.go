package eval

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of a repository.
const (
	maxRepository = 16 << 30 // bytes
	maxFiles      = 2_000_000
)

// writer writes the files of a copy. Names are slash-separated and relative. The root
// refuses names and links that lead out of the folder.
type writer struct {
	root      *os.Root
	skipLinks bool // that lead out of the folder; else they are errors
	bytes     int64
	files     int
}

// copyInto copies a folder or an archive into a folder that exists. Files that are
// there are replaced. A link that leads out of the folder is an error.
func copyInto(dst, src string) (err error) { return copyWith(&writer{}, dst, src) }

// copyInside is copyInto without the links that lead out of the folder.
func copyInside(dst, src string) error { return copyWith(&writer{skipLinks: true}, dst, src) }

func copyWith(w *writer, dst, src string) (err error) {
	if w.root, err = os.OpenRoot(dst); err != nil {
		return err
	}
	defer w.root.Close()
	if extract := archiveOf(src); extract != nil && !isDir(src) {
		if err := extract(w, src); err != nil {
			return fmt.Errorf("extract %s: %w", filepath.Base(src), err)
		}
		return nil
	}
	return w.copyTree(src)
}

func (w *writer) copyTree(src string) error {
	return filepath.WalkDir(src, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == src {
			return err
		}
		rel, err := filepath.Rel(src, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir():
			return w.folder(rel)
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return w.link(rel, filepath.ToSlash(to))
		case !d.Type().IsRegular():
			return nil // a socket or the like, which an agent may have left
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		return w.file(rel, fi.Mode(), f)
	})
}

func (w *writer) folder(name string) error {
	if w.files++; w.files > maxFiles {
		return fmt.Errorf("more than %d files", maxFiles)
	}
	return w.root.MkdirAll(name, 0o755)
}

// link creates a symbolic link.
func (w *writer) link(name, to string) error {
	out := path.IsAbs(to) || filepath.IsAbs(to) || !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), to)))
	if out && w.skipLinks {
		return nil
	}
	if out {
		return fmt.Errorf("link %s leads to %s, out of the folder", name, to)
	}
	if err := w.folder(path.Dir(name)); err != nil {
		return err
	}
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return w.root.Symlink(filepath.FromSlash(to), name)
}

func (w *writer) file(name string, mode fs.FileMode, from io.Reader) (err error) {
	if err := w.folder(path.Dir(name)); err != nil {
		return err
	}
	// A link that the agent has put there is replaced, not followed.
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	f, err := w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.Copy(f, io.LimitReader(from, maxRepository-w.bytes+1))
	if w.bytes += n; w.bytes > maxRepository {
		return errors.New("more than 16 GB")
	}
	return err
}

// archiveOf returns the function that extracts a file by its name, nil if it is not
// an archive.
func archiveOf(name string) func(*writer, string) error {
	switch lower := strings.ToLower(filepath.Base(name)); {
	case strings.HasSuffix(lower, ".tar"), strings.HasSuffix(lower, ".tar.gz"), strings.HasSuffix(lower, ".tgz"):
		return (*writer).extractTar
	case strings.HasSuffix(lower, ".zip"):
		return (*writer).extractZip
	}
	return nil
}

func (w *writer) extractTar(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var from io.Reader = f
	if !strings.HasSuffix(strings.ToLower(name), ".tar") {
		gz, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		from = gz
	}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // of git archive
			continue
		}
		entry, err := entryName(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = w.folder(entry)
		case tar.TypeReg:
			err = w.file(entry, fs.FileMode(h.Mode), r)
		case tar.TypeSymlink:
			err = w.link(entry, h.Linkname)
		default:
			err = fmt.Errorf("%s is not a file, a folder or a symbolic link", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (w *writer) extractZip(name string) error {
	r, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, f := range r.File {
		if err := w.zipEntry(f); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) zipEntry(f *zip.File) error {
	entry, err := entryName(f.Name)
	if err != nil {
		return err
	}
	if f.FileInfo().IsDir() {
		return w.folder(entry)
	}
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	if f.Mode()&fs.ModeSymlink != 0 {
		to, err := io.ReadAll(io.LimitReader(from, 4096))
		if err != nil {
			return err
		}
		return w.link(entry, string(to))
	}
	return w.file(entry, f.Mode(), from)
}

// entryName checks the name of an archive's entry.
func entryName(name string) (string, error) {
	clean := path.Clean(name)
	if !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", fmt.Errorf("entry %q leads out of the folder", name)
	}
	return clean, nil
}
