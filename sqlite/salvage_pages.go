package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
)

// A damaged file is read without SQLite, which gives up on a table if one of
// its inner pages is lost. Rows are in leaf pages, and each leaf can be read
// separately. https://www.sqlite.org/fileformat2.html describes the format.

// pages are the pages of a file, with the committed pages of its write-ahead
// log.
type pages struct {
	file, log *os.File
	size      int64           // of a page
	usable    int64           // usable bytes of a page
	count     int64           // pages, in the file and in the log
	logged    map[int64]int64 // offset of a page in the log
}

// openPages opens a file for reading. It may be truncated.
func openPages(path string) (_ *pages, err error) {
	p := &pages{logged: make(map[int64]int64)}
	if p.file, err = os.Open(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	info, err := p.file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errForeign
	}
	header := make([]byte, 100)
	_, _ = p.file.ReadAt(header, 0) // missing bytes are zero
	if size := headerSize(header); size > 0 {
		p.size, p.usable = size, size-min(int64(header[20]), 32)
	} else {
		p.size = p.likelySize(info.Size())
		p.usable = p.size
	}
	p.count = (info.Size() + p.size - 1) / p.size
	log, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.log = log
	return p, p.readLog()
}

// headerSize returns the page size that the header of a file says, 0 if it says none.
func headerSize(header []byte) int64 {
	size := int64(binary.BigEndian.Uint16(header[16:]))
	if size == 1 {
		size = 65536
	}
	if string(header[:16]) != "SQLite format 3\x00" || size < 512 || size&(size-1) != 0 {
		return 0
	}
	return size
}

// oldPageSize is the page size of the files of older versions.
const oldPageSize = 4096

// likelySize returns the page size of a file without its header: that of furl's two sizes with
// which more pages of the first megabytes look like pages with rows or entries.
func (p *pages) likelySize(length int64) int64 {
	counted := func(size int64) (n int) {
		p.size, p.usable, p.count = size, size, (length+size-1)/size
		buf := make([]byte, size)
		for page := int64(2); page <= min(p.count, 16<<20/size); page++ {
			if p.read(page, buf) == nil && p.looksFilled(buf) {
				n++
			}
		}
		return n
	}
	if counted(oldPageSize) >= counted(newPageSize) {
		return oldPageSize
	}
	return newPageSize
}

// looksFilled reports whether a page's header, and all offsets in it, are those of a page with
// rows or entries that uses the whole page.
func (p *pages) looksFilled(buf []byte) bool {
	if buf[0] != leafTable && buf[0] != leafIndex {
		return false
	}
	n := int(binary.BigEndian.Uint16(buf[3:]))
	start := int64(binary.BigEndian.Uint16(buf[5:]))
	if n == 0 || start < 8+2*int64(n) || start >= p.usable {
		return false
	}
	at := p.pointers(buf, 0, 8)
	return len(at) == n && slices.Min(at) >= start
}

func (p *pages) close() {
	p.file.Close()
	if p.log != nil {
		p.log.Close()
	}
}

// readLog finds the pages in the write-ahead log, up to the last commit
// before the first invalid frame.
func (p *pages) readLog() error {
	header := make([]byte, 32)
	if _, err := p.log.ReadAt(header, 0); err != nil {
		return ended(err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(header) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return nil
	}
	if int64(binary.BigEndian.Uint32(header[8:])) != p.size {
		return nil
	}
	sum := logSum(order, [2]uint32{}, header[:24])
	if sum != [2]uint32{binary.BigEndian.Uint32(header[24:]), binary.BigEndian.Uint32(header[28:])} {
		return nil
	}
	frame := make([]byte, 24+p.size)
	open := make(map[int64]int64) // of a transaction without its commit so far
	for at := int64(32); ; at += int64(len(frame)) {
		if _, err := p.log.ReadAt(frame, at); err != nil {
			return ended(err)
		}
		if string(frame[8:16]) != string(header[16:24]) { // of an earlier log
			return nil
		}
		sum = logSum(order, logSum(order, sum, frame[:8]), frame[24:])
		if sum != [2]uint32{binary.BigEndian.Uint32(frame[16:]), binary.BigEndian.Uint32(frame[20:])} {
			return nil
		}
		open[int64(binary.BigEndian.Uint32(frame))] = at + 24
		if total := int64(binary.BigEndian.Uint32(frame[4:])); total != 0 {
			for page, where := range open {
				p.logged[page] = where
				p.count = max(p.count, page)
			}
			clear(open)
		}
	}
}

// ended returns nil for the end of a file.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// logSum continues the checksum of a write-ahead log.
func logSum(order binary.ByteOrder, sum [2]uint32, b []byte) [2]uint32 {
	for ; len(b) >= 8; b = b[8:] {
		sum[0] += order.Uint32(b) + sum[1]
		sum[1] += order.Uint32(b[4:]) + sum[0]
	}
	return sum
}

// read reads a page, counted from 1, into buf. Unreadable bytes are zero; it
// returns an error if the whole page is unreadable.
func (p *pages) read(page int64, buf []byte) error {
	if page < 1 || page > p.count {
		return fmt.Errorf("page %d does not exist", page)
	}
	clear(buf)
	file, at := p.file, (page-1)*p.size
	if where, ok := p.logged[page]; ok {
		file, at = p.log, where
	}
	n, err := file.ReadAt(buf, at)
	if n == 0 && err != nil {
		return fmt.Errorf("page %d: %w", page, err)
	}
	return nil
}

// The kinds of pages with rows or entries.
const (
	innerIndex = 2
	leafIndex  = 10
	leafTable  = 13
)

// cells returns the offsets of the rows in a leaf page of a table. Other
// pages have none.
func (p *pages) cells(page int64, buf []byte) []int64 {
	head := int64(0)
	if page == 1 {
		head = 100
	}
	if buf[head] != leafTable {
		return nil
	}
	return p.pointers(buf, head, head+8)
}

// entries returns the entries in a page of an index, or of a table without row
// numbers. Other pages have none, and unreadable entries are missing.
func (p *pages) entries(page int64, buf []byte) (list [][]any) {
	first, skip := int64(8), int64(0)
	switch {
	case page == 1:
		return nil
	case buf[0] == innerIndex: // entries follow the number of a page
		first, skip = 12, 4
	case buf[0] != leafIndex:
		return nil
	}
	for _, at := range p.pointers(buf, 0, first) {
		if at+skip > p.usable {
			continue
		}
		size, cell, ok := varint(buf[at+skip : p.usable])
		if !ok || size > maxRow || int64(size) > (p.count+1)*p.size {
			continue
		}
		payload, err := p.payload(int64(size), (p.usable-12)*64/255-23, cell)
		if err != nil {
			continue
		}
		if values, err := rowValues(payload); err == nil {
			list = append(list, values)
		}
	}
	return list
}

// pointers returns the offsets of a page's cells. The page's header is at head, the list of
// offsets at first.
func (p *pages) pointers(buf []byte, head, first int64) (at []int64) {
	n := int64(binary.BigEndian.Uint16(buf[head+3:]))
	for i := range n {
		pointer := first + 2*i
		if pointer+2 > p.usable {
			return at
		}
		if cell := int64(binary.BigEndian.Uint16(buf[pointer:])); cell >= pointer && cell < p.usable {
			at = append(at, cell)
		}
	}
	return at
}

// errCell reports an unreadable row.
var errCell = errors.New("unreadable row")

// maxRow bounds the size that a damaged row can claim: the largest body.
const maxRow = maxBody

// row reads a row of a page. Values are nil, int64, text as string, or
// []byte; floats, which furl does not store, are an error.
func (p *pages) row(buf []byte, at int64) (id int64, values []any, err error) {
	cell := buf[at:p.usable]
	size, cell, ok := varint(cell)
	if !ok || size > maxRow || int64(size) > (p.count+1)*p.size {
		return 0, nil, errCell
	}
	rowid, cell, ok := varint(cell)
	if !ok {
		return 0, nil, errCell
	}
	payload, err := p.payload(int64(size), p.usable-35, cell)
	if err != nil {
		return 0, nil, err
	}
	values, err = rowValues(payload)
	return int64(rowid), values, err
}

// payload returns the bytes of a row or an entry, including those on overflow pages. most
// is how many bytes a page of its kind has of one.
func (p *pages) payload(size, most int64, cell []byte) ([]byte, error) {
	local := size
	if size > most {
		least := (p.usable-12)*32/255 - 23
		if local = least + (size-least)%(p.usable-4); local > most {
			local = least
		}
	}
	if local > int64(len(cell)) {
		return nil, errCell
	}
	if local == size {
		return cell[:local], nil
	}
	if local+4 > int64(len(cell)) {
		return nil, errCell
	}
	payload := append([]byte(nil), cell[:local]...)
	next := int64(binary.BigEndian.Uint32(cell[local:]))
	more := make([]byte, p.size)
	for int64(len(payload)) < size {
		if err := p.read(next, more); err != nil {
			return nil, errCell
		}
		next = int64(binary.BigEndian.Uint32(more))
		payload = append(payload, more[4:4+min(p.usable-4, size-int64(len(payload)))]...)
	}
	return payload, nil
}

// rowValues decodes a record of SQLite's file format.
func rowValues(payload []byte) (values []any, err error) {
	headSize, types, ok := varint(payload)
	if !ok || headSize > uint64(len(payload)) || headSize < uint64(len(payload)-len(types)) {
		return nil, errCell
	}
	types, body := payload[len(payload)-len(types):headSize], payload[headSize:]
	for len(types) > 0 {
		var kind uint64
		if kind, types, ok = varint(types); !ok {
			return nil, errCell
		}
		size, isInt := uint64(0), false
		switch {
		case kind == 0, kind == 8, kind == 9:
		case kind <= 4:
			size, isInt = kind, true
		case kind == 5, kind == 6:
			size, isInt = 6+2*(kind-5), true
		case kind < 12:
			return nil, errCell
		default:
			size = (kind - 12) / 2
		}
		if size > uint64(len(body)) {
			return nil, errCell
		}
		value := body[:size:size]
		body = body[size:]
		switch {
		case kind == 0:
			values = append(values, nil)
		case kind == 8, kind == 9:
			values = append(values, int64(kind-8))
		case isInt:
			n := int64(int8(value[0]))
			for _, c := range value[1:] {
				n = n<<8 | int64(c)
			}
			values = append(values, n)
		case kind%2 == 1:
			values = append(values, string(value))
		default:
			values = append(values, value)
		}
	}
	return values, nil
}

// varint decodes a SQLite integer and returns the bytes after it.
func varint(b []byte) (n uint64, rest []byte, ok bool) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return n<<8 | uint64(b[i]), b[9:], true
		}
		n = n<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return n, b[i+1:], n <= math.MaxInt64
		}
	}
	return 0, nil, false
}
