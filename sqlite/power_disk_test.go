//go:build unix

package sqlite_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// recordingVFS is the name of a layer between SQLite and its files. It passes
// all calls to the default layer, and the disk that is recording logs all
// writes and flushes in order. recordedDisk.afterPowerLoss then computes what a
// power loss at any moment may leave.
const recordingVFS = "furl-recording"

// recordedDisk is the log of what SQLite and the store did to the files of a
// folder.
type recordedDisk struct {
	dir string

	mu     sync.Mutex
	before [][]byte       // content of the files at the start, by number
	first  map[string]int // their names
	names  map[string]int // current names
	files  int            // numbers assigned
	ops    []diskOp
}

// diskOp is one change, flush or note. from is the length of ops at the start
// of a flush: the flush covers the operations before that.
type diskOp struct {
	what diskWhat
	file int
	name string
	at   int64 // offset, or size
	data []byte
	from int
}

type diskWhat int

const (
	opWrite diskWhat = iota
	opTruncate
	opFlush       // of a file's content
	opLink        // a name is given to a new file
	opUnlink      // a name is removed
	opFlushFolder // of the names
	opNote        // no change of the files
)

// recordDisk records the files of dir from now on; their current content
// counts as flushed. Only one disk can record at a time.
func recordDisk(t testing.TB, dir string) *recordedDisk {
	t.Helper()
	d := &recordedDisk{dir: dir, names: make(map[string]int)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		d.names[e.Name()] = d.files
		d.before = append(d.before, data)
		d.files++
	}
	d.first = maps.Clone(d.names)
	registerRecordingVFS()
	recording.Lock()
	defer recording.Unlock()
	if recording.disk != nil {
		t.Fatal("another disk is already recording")
	}
	recording.disk = d
	return d
}

// stop ends the recording.
func (d *recordedDisk) stop() {
	recording.Lock()
	defer recording.Unlock()
	recording.disk = nil
}

// sync is the function with which the store flushes its log.
func (d *recordedDisk) sync(f *os.File) error {
	flushed := d.flush(filepath.Base(f.Name()))
	err := f.Sync()
	if err == nil {
		flushed()
	}
	return err
}

// note returns the number of operations so far, and counts as one.
func (d *recordedDisk) note() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, diskOp{what: opNote})
	return len(d.ops)
}

func (d *recordedDisk) add(op diskOp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, op)
}

// opened returns the number of the file with a name, a new one if needed.
func (d *recordedDisk) opened(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	file, ok := d.names[name]
	if !ok {
		file = d.files
		d.files++
		d.names[name] = file
		d.ops = append(d.ops, diskOp{what: opLink, file: file, name: name})
	}
	return file
}

func (d *recordedDisk) removed(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, name)
	d.ops = append(d.ops, diskOp{what: opUnlink, name: name})
}

// flush logs the start of a flush of a file, or of the folder if name is ".",
// and returns a function that logs its end.
func (d *recordedDisk) flush(name string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	op := diskOp{what: opFlush, file: d.names[name], from: len(d.ops)}
	if name == "." {
		op.what = opFlushFolder
	}
	return func() { d.add(op) }
}

// afterPowerLoss returns the files that a power loss after n operations may
// leave: everything flushed, and a random part of the rest. Writes may be
// torn between sectors.
func (d *recordedDisk) afterPowerLoss(n int, rnd *rand.Rand) map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	ops := d.ops[:n]
	flushed := make(map[int]int) // by file, the number of operations that are on disk
	folder := 0
	for _, op := range ops {
		switch op.what {
		case opFlush:
			flushed[op.file] = max(flushed[op.file], op.from)
		case opFlushFolder:
			folder = max(folder, op.from)
		}
	}
	kept := []float64{0, 0.1, 0.5, 0.9, 1}[rnd.IntN(5)] // share of the unflushed operations
	sector := []int{512, 4096}[rnd.IntN(2)]
	content := make(map[int][]byte)
	for file, data := range d.before {
		content[file] = bytes.Clone(data)
	}
	names := maps.Clone(d.first)
	for i, op := range ops {
		sure := i < flushed[op.file]
		switch op.what {
		case opWrite:
			if sure {
				content[op.file] = writeAt(content[op.file], op.at, op.data)
				continue
			}
			for from := 0; from < len(op.data); {
				to := min(from+sector-int(op.at+int64(from))%sector, len(op.data))
				if rnd.Float64() < kept {
					content[op.file] = writeAt(content[op.file], op.at+int64(from), op.data[from:to])
				}
				from = to
			}
		case opTruncate:
			if sure || rnd.Float64() < kept {
				data := content[op.file]
				content[op.file] = append(data[:min(int64(len(data)), op.at):len(data)], make([]byte, max(0, op.at-int64(len(data))))...)
			}
		case opLink:
			if i < folder || rnd.Float64() < kept {
				names[op.name] = op.file
			}
		case opUnlink:
			if i < folder || rnd.Float64() < kept {
				delete(names, op.name)
			}
		}
	}
	files := make(map[string][]byte)
	for name, file := range names {
		files[name] = content[file]
	}
	return files
}

func writeAt(data []byte, at int64, b []byte) []byte {
	if grow := at + int64(len(b)) - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[at:], b)
	return data
}

// The layer. SQLite calls it from several goroutines.
var (
	recording struct {
		sync.Mutex
		disk    *recordedDisk
		handles map[uintptr]*handle // by the address of SQLite's file
		methods map[uintptr]uintptr // recording methods, by the default ones
	}
	usual *lib.Tsqlite3_vfs
)

// handle is an open file.
type handle struct {
	*lib.Tsqlite3_io_methods // the default ones
	disk                     *recordedDisk
	name                     string
	file                     int
	// newLog means that the first flush also flushes the folder, as SQLite
	// does for logs and journals that it may have created.
	newLog bool
}

var registerRecordingVFS = sync.OnceFunc(func() {
	recording.handles, recording.methods = make(map[uintptr]*handle), make(map[uintptr]uintptr)
	tls := libc.NewTLS()
	usual = (*lib.Tsqlite3_vfs)(pointer(lib.Xsqlite3_vfs_find(tls, 0)))
	own := *usual
	own.FpNext = 0
	name, err := libc.CString(recordingVFS)
	if err != nil {
		panic(err)
	}
	own.FzName = name
	own.FxOpen = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32
	}{vfsOpen}))
	own.FxDelete = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr, uintptr, int32) int32
	}{vfsDelete}))
	at := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(own)))
	*(*lib.Tsqlite3_vfs)(pointer(at)) = own
	if rc := lib.Xsqlite3_vfs_register(tls, at, 0); rc != lib.SQLITE_OK {
		panic(rc)
	}
})

// pointer is an address outside Go's memory.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

func vfsOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	open := *(*func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{usual.FxOpen}))
	rc := open(tls, vfs, name, file, flags, out)
	recording.Lock()
	defer recording.Unlock()
	if rc != lib.SQLITE_OK || name == 0 || recording.disk == nil {
		return rc
	}
	methods := &(*lib.Tsqlite3_file)(pointer(file)).FpMethods
	usualMethods := *methods
	if recording.methods[usualMethods] == 0 {
		recording.methods[usualMethods] = recordingMethods(tls, usualMethods)
	}
	*methods = recording.methods[usualMethods]
	base := filepath.Base(libc.GoString(name))
	recording.handles[file] = &handle{
		Tsqlite3_io_methods: (*lib.Tsqlite3_io_methods)(pointer(usualMethods)), disk: recording.disk, name: base, file: recording.disk.opened(base),
		newLog: flags&lib.SQLITE_OPEN_CREATE != 0 && flags&(lib.SQLITE_OPEN_WAL|lib.SQLITE_OPEN_MAIN_JOURNAL) != 0,
	}
	return rc
}

// recordingMethods returns a table of methods that record.
func recordingMethods(tls *libc.TLS, usual uintptr) uintptr {
	own := *(*lib.Tsqlite3_io_methods)(pointer(usual))
	own.FxClose = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr) int32
	}{fileClose}))
	own.FxWrite = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr, uintptr, int32, int64) int32
	}{fileWrite}))
	own.FxTruncate = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr, int64) int32
	}{fileTruncate}))
	own.FxSync = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr, int32) int32
	}{fileSync}))
	at := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(own)))
	*(*lib.Tsqlite3_io_methods)(pointer(at)) = own
	return at
}

func vfsDelete(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32 {
	remove := *(*func(*libc.TLS, uintptr, uintptr, int32) int32)(unsafe.Pointer(&struct{ uintptr }{usual.FxDelete}))
	rc := remove(tls, vfs, name, syncFolder)
	recording.Lock()
	disk := recording.disk
	recording.Unlock()
	if rc == lib.SQLITE_OK && disk != nil {
		disk.removed(filepath.Base(libc.GoString(name)))
		if syncFolder != 0 {
			disk.flush(".")()
		}
	}
	return rc
}

func handleOf(file uintptr) *handle {
	recording.Lock()
	defer recording.Unlock()
	return recording.handles[file]
}

func fileClose(tls *libc.TLS, file uintptr) int32 {
	h := handleOf(file)
	recording.Lock()
	delete(recording.handles, file)
	recording.Unlock()
	return (*(*func(*libc.TLS, uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{h.FxClose})))(tls, file)
}

func fileWrite(tls *libc.TLS, file, data uintptr, n int32, at int64) int32 {
	h := handleOf(file)
	rc := (*(*func(*libc.TLS, uintptr, uintptr, int32, int64) int32)(unsafe.Pointer(&struct{ uintptr }{h.FxWrite})))(tls, file, data, n, at)
	if rc == lib.SQLITE_OK {
		h.disk.add(diskOp{what: opWrite, file: h.file, at: at, data: bytes.Clone(unsafe.Slice((*byte)(pointer(data)), n))})
	}
	return rc
}

func fileTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	h := handleOf(file)
	rc := (*(*func(*libc.TLS, uintptr, int64) int32)(unsafe.Pointer(&struct{ uintptr }{h.FxTruncate})))(tls, file, size)
	if rc == lib.SQLITE_OK {
		h.disk.add(diskOp{what: opTruncate, file: h.file, at: size})
	}
	return rc
}

func fileSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	h := handleOf(file)
	flushed := h.disk.flush(h.name)
	folder := func() {}
	if h.newLog {
		h.newLog = false
		folder = h.disk.flush(".")
	}
	rc := (*(*func(*libc.TLS, uintptr, int32) int32)(unsafe.Pointer(&struct{ uintptr }{h.FxSync})))(tls, file, flags)
	if rc == lib.SQLITE_OK {
		flushed()
		folder()
	}
	return rc
}
