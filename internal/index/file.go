package index

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/furlhq/furl/internal/packed"
)

// File is what the index has of one file. A nil one has nothing and keeps nothing.
type File struct {
	x     *Index
	path  string // absolute
	stamp string
	size  int64
	seal  cipher.AEAD
	since time.Time // when it was stamped
	quiet bool      // the file has not changed lately

	known []entry // as in the entry file
	fresh []entry
	uses  []string
}

// entry is what one Put has kept.
type entry struct {
	Section string `json:"section"`
	Key     string `json:"key"`   // a hash
	Bytes   int    `json:"bytes"` // of sealed

	at     int64 // where it is in the entry file
	sealed []byte
}

// header is what an entry file begins with, after a first line and its own size. The sealed entries follow it.
type header struct {
	Path    string  `json:"path"`
	Build   string  `json:"build"`
	Stamp   string  `json:"stamp"` // a hash
	Entries []entry `json:"entries"`
}

const (
	// sectionUses has the stamps of the files of Uses.
	sectionUses = "uses"
	maxHeader   = 1 << 20
	maxEntries  = 10_000
	sample      = 4 << 10 // bytes of a file in its key, three times
)

func firstLine() string { return fmt.Sprintf("furl index %d\n", Format) }

// File returns what the index has of a file, which must be called before the file is read. It returns nil for what
// is not a regular file and for one that cannot be read.
func (x *Index) File(path string) *File {
	if x == nil {
		return nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	f := &File{x: x, path: abs, since: time.Now()}
	var ok bool
	if f.stamp, f.quiet, ok = f.now(); !ok {
		return nil
	}
	if f.seal, err = f.cipher(); err != nil {
		return nil
	}
	f.known = f.load(false)
	return f
}

// now returns the stamps of the file and of the write-ahead log of a database.
func (f *File) now() (stamp string, quiet, ok bool) {
	own, log := stampOf(f.path), stampOf(f.path+"-wal")
	log.inode = inode{} // SQLite changes its times when root only reads the database
	if !own.exists() || !own.mode.IsRegular() {
		return "", false, false
	}
	sum := sha256.Sum256([]byte(f.path + "\x00" + own.String() + "\x00" + log.String()))
	return hex.EncodeToString(sum[:]), own.settled(f.since) && log.settled(f.since), true
}

// cipher returns the cipher of the file's entries. Its key is made of bytes of the file.
func (f *File) cipher() (cipher.AEAD, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "key of furl index %d\x00%d\x00", Format, info.Size())
	buf := make([]byte, sample)
	last := int64(-1)
	for _, at := range []int64{0, info.Size() / 2, max(0, info.Size()-sample)} {
		if at == last {
			continue
		}
		n, err := file.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		h.Write(buf[:n])
		last = at
	}
	f.size = info.Size()
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// load returns the entries of the entry file, with whole what is in them. What is outdated or damaged
// counts as absent.
func (f *File) load(whole bool) []entry {
	file, err := os.Open(f.place())
	if err != nil {
		return nil
	}
	defer file.Close()
	h, at, err := readHeader(file)
	if err != nil || h.Path != f.path || h.Stamp != f.stamp || h.Build != hex.EncodeToString(f.x.build[:]) {
		return nil
	}
	list := h.Entries
	for i := range list {
		e := &list[i]
		if e.Bytes < 0 || e.Bytes > maxEntry+sample {
			return nil
		}
		e.at = at
		at += int64(e.Bytes)
		if whole && e.read(file) != nil {
			return nil
		}
	}
	data, ok := f.find(list, sectionUses, "")
	if !ok {
		return nil
	}
	var uses []use
	if packed.Unmarshal(data, &uses) != nil {
		return nil
	}
	for _, u := range uses {
		if f.x.treeOf(u.Path).identity() != u.Stamp {
			return nil
		}
	}
	for _, u := range uses {
		f.Uses(u.Path)
	}
	return list
}

// place is the path of the entry file.
func (f *File) place() string { return filepath.Join(f.x.dir, nameOf(f.path)) }

// read reads the sealed data of an entry.
func (e *entry) read(file io.ReaderAt) error {
	sealed := make([]byte, e.Bytes)
	if _, err := file.ReadAt(sealed, e.at); err != nil {
		return err
	}
	e.sealed = sealed
	return nil
}

// use is a file of Uses and its stamp.
type use struct{ Path, Stamp string }

// readHeader reads the start of an entry file, and returns where the first entry is.
func readHeader(file io.ReaderAt) (h header, end int64, err error) {
	start := make([]byte, len(firstLine())+4)
	if _, err := file.ReadAt(start, 0); err != nil || !bytes.HasPrefix(start, []byte(firstLine())) {
		return h, 0, errDamaged
	}
	size := binary.LittleEndian.Uint32(start[len(firstLine()):])
	if size > maxHeader {
		return h, 0, errDamaged
	}
	text := make([]byte, size)
	if _, err := file.ReadAt(text, int64(len(start))); err != nil {
		return h, 0, errDamaged
	}
	if json.Unmarshal(text, &h) != nil || len(h.Entries) > maxEntries {
		return h, 0, errDamaged
	}
	return h, int64(len(start)) + int64(size), nil
}

var errDamaged = errors.New("damaged entry file")

// bound is what a sealed entry belongs to. It does not open elsewhere.
func (f *File) bound(section, key string) []byte {
	return []byte(f.stamp + "\x00" + string(f.x.build[:]) + "\x00" + section + "\x00" + key)
}

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func (f *File) find(list []entry, section, key string) ([]byte, bool) {
	hash := hashOf(key)
	at := slices.IndexFunc(list, func(e entry) bool { return e.Section == section && e.Key == hash })
	if at < 0 {
		return nil, false
	}
	e := list[at]
	if e.sealed == nil {
		file, err := os.Open(f.place()) // perhaps a newer one, in which something else is there
		if err != nil {
			return nil, false
		}
		defer file.Close()
		if e.read(file) != nil {
			return nil, false
		}
	}
	data, err := f.seal.Open(nil, nil, e.sealed, f.bound(section, key))
	return data, err == nil
}

// Get returns what was put under a key into a section, which names what the data is: a constant of the
// program. It reports false if there is nothing, or nothing that is valid.
func (f *File) Get(section, key string) ([]byte, bool) {
	if f == nil {
		return nil, false
	}
	if data, ok := f.find(f.fresh, section, key); ok {
		return data, true
	}
	return f.find(f.known, section, key)
}

// Put keeps data, at most 32 MiB, under a key, which may have any length. It replaces what is there. Save
// writes it.
func (f *File) Put(section, key string, data []byte) {
	if f == nil || len(data) > maxEntry {
		return
	}
	sealed := f.seal.Seal(nil, nil, data, f.bound(section, key))
	e := entry{Section: section, Key: hashOf(key), Bytes: len(sealed), sealed: sealed}
	f.fresh = append(slices.DeleteFunc(f.fresh, e.same), e)
}

// Uses adds other files that what is kept of this one depends on, also those that do not exist, and
// folders whose listing matters.
func (f *File) Uses(paths ...string) {
	if f == nil {
		return
	}
	for _, p := range paths {
		if abs, err := filepath.Abs(p); err == nil && !slices.Contains(f.uses, abs) {
			f.uses = append(f.uses, abs)
		}
	}
}

// Save writes what was put, unless the file or one that it uses has changed since File or shortly
// before. It fails silently: then the file is read again.
func (f *File) Save() {
	if f == nil || len(f.fresh) == 0 || !f.quiet {
		return
	}
	if stamp, _, ok := f.now(); !ok || stamp != f.stamp {
		return
	}
	uses := []use{}
	for _, path := range f.uses {
		s := f.x.treeOf(path)
		if !s.settled(f.since) {
			return
		}
		uses = append(uses, use{path, s.identity()})
	}
	f.Put(sectionUses, "", packed.Marshal(uses))
	f.known = merged(f.load(true), f.fresh) // with what other processes have written
	f.fresh = nil
	f.x.write(f)
}

func (e entry) same(o entry) bool { return e.Section == o.Section && e.Key == o.Key }

// merged adds new entries to those of before, and drops the oldest ones that are too many.
func merged(known, fresh []entry) []entry {
	type name struct{ section, key string }
	replaced := make(map[name]bool)
	for _, e := range fresh {
		replaced[name{e.Section, e.Key}] = true
	}
	all := append(slices.DeleteFunc(known, func(e entry) bool { return replaced[name{e.Section, e.Key}] }), fresh...)
	count, total := make(map[string]int), 0
	var kept []entry
	for _, e := range slices.Backward(all) {
		if count[e.Section]++; count[e.Section] <= maxPerSection && total+e.Bytes <= maxFile && len(kept) < maxEntries {
			total += e.Bytes
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

// write replaces the entry file at once, so that no process reads half of it.
func (x *Index) write(f *File) {
	head, err := json.Marshal(header{Path: f.path, Build: hex.EncodeToString(x.build[:]), Stamp: f.stamp, Entries: f.known})
	if err != nil || len(head) > maxHeader || !x.makeFolder() {
		return
	}
	var out bytes.Buffer
	out.WriteString(firstLine())
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(head))))
	out.Write(head)
	for i := range f.known {
		out.Write(f.known[i].sealed)
	}
	tmp, err := os.CreateTemp(x.dir, tempPrefix) // with mode 0600
	if err != nil {
		return
	}
	_, err = tmp.Write(out.Bytes())
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), f.place())
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return
	}
	x.mu.Lock()
	x.wrote = true
	x.mu.Unlock()
}

// makeFolder makes the folder, which only its owner can read.
func (x *Index) makeFolder() bool {
	if os.MkdirAll(x.dir, 0o700) != nil {
		return false
	}
	info, err := os.Stat(x.dir)
	if err != nil || !info.IsDir() {
		return false
	}
	return info.Mode().Perm()&0o077 == 0 || os.Chmod(x.dir, 0o700) == nil
}
