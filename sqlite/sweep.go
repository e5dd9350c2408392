package sqlite

import (
	"context"
	"encoding/binary"
)

// SQLite's secure_delete overwrites what is deleted, where it stood last. When
// a page is split, though, the rows that move to another page stay behind as
// bytes in the unused middle of the first, and nothing overwrites those. So
// after a delete the unused middles of all pages are filled with zeros, by way
// of SQLite's table of raw pages.
// See https://www.sqlite.org/fileformat2.html#b_tree_pages for the layout.

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

// unswept finds the pages with something in their unused part.
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

// clear fills the unused part of some pages with zeros, as they are by now.
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

// unused gives the unused part of a page between its list of cells and their
// content; nothing if it is no page of a b-tree.
func unused(number int64, page []byte) (from, to int) {
	size := len(page)
	// Pages that map pages begin with a number that looks like a kind. Those
	// that are free or hold the rest of a long row begin with the number of
	// the next, which in a file of 64 GB and more could look like one.
	if size < 512 || number >= 1<<24 || (number-2)%int64(size/5+1) == 0 {
		return 0, 0
	}
	at := 0
	if number == 1 {
		at = 100 // behind the file's header
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

// clearBytes reports whether any byte is not zero, and makes it so if asked to.
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
