package sqlite

import (
	"context"
	"encoding/binary"
)

// SQLite's secure_delete overwrites deleted data in its last position. When a
// page is split, however, the rows that move to another page remain as bytes
// in the unused middle of the first, and SQLite does not overwrite them. So
// after a delete the unused middles of all pages are filled with zeros,
// through SQLite's table of raw pages. See
// https://www.sqlite.org/fileformat2.html#b_tree_pages for the layout.

// sweepPages is how many pages are swept in one transaction.
const sweepPages = 500

// sweep clears the unused parts of all pages.
func (s *Store) sweep(ctx context.Context) error {
	dirty, err := s.unswept(ctx)
	if err != nil {
		return err
	}
	for len(dirty) > 0 {
		some := dirty[:min(len(dirty), sweepPages)]
		if err := s.do(ctx, &job{do: func(w *writer) error { return w.clear(some) }}); err != nil {
			return err
		}
		dirty = dirty[len(some):]
	}
	return nil
}

// unswept finds the pages with data in their unused part.
func (s *Store) unswept(ctx context.Context) (pages []int64, err error) {
	rows, err := s.read.QueryContext(ctx, "SELECT pgno, data FROM sqlite_dbpage")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var page []byte
		if err := rows.Scan(&number, &page); err != nil {
			return nil, err
		}
		if from, to := unused(number, page); clearBytes(page[from:to], false) {
			pages = append(pages, number)
		}
	}
	return pages, rows.Err()
}

// clear fills the unused part of some pages with zeros, as of now.
func (w *writer) clear(pages []int64) error {
	for _, number := range pages {
		var page []byte
		if err := w.row("SELECT data FROM sqlite_dbpage WHERE pgno = ?", number).Scan(&page); err != nil {
			continue // the file has become shorter
		}
		from, to := unused(number, page)
		if !clearBytes(page[from:to], true) {
			continue
		}
		if err := w.exec("UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?", page, number); err != nil {
			return err
		}
	}
	return nil
}

// unused returns the unused part of a page between its list of cells and
// their content; 0, 0 if it is not a b-tree page.
func unused(number int64, page []byte) (from, to int) {
	size := len(page)
	// Pointer map pages start with a byte that looks like a page type. Free
	// pages and overflow pages start with the number of the next page, which
	// could look like one in a file of 64 GB or more.
	if size < 512 || number >= 1<<24 || (number-2)%int64(size/5+1) == 0 {
		return 0, 0
	}
	at := 0
	if number == 1 {
		at = 100 // after the file header
	}
	header := 8
	switch page[at] {
	case 2, 5: // inner pages
		header = 12
	case 10, 13: // leaves
	default:
		return 0, 0
	}
	cells := int(binary.BigEndian.Uint16(page[at+3:]))
	content := int(binary.BigEndian.Uint16(page[at+5:]))
	if content == 0 {
		content = 1 << 16
	}
	from = at + header + 2*cells
	if from > content || content > size {
		return 0, 0
	}
	return from, content
}

// clearBytes reports whether any byte is not zero, and zeroes them if change
// is set.
func clearBytes(b []byte, change bool) (had bool) {
	for i := range b {
		if b[i] != 0 {
			if !change {
				return true
			}
			had, b[i] = true, 0
		}
	}
	return had
}
