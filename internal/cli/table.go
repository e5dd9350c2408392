package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// table is rows of cells whose columns line up. On a terminal its head is bold
// and its lines are no longer than the terminal is wide.
type table struct {
	w       io.Writer
	cols    int  // of the terminal, 0 if w is not a terminal
	styled  bool // w shows styles
	columns []column
	rows    [][]string
}

// column is a column of a table. If no column has a name, the table has no
// head.
type column struct {
	name  string // a line break in it starts another line of the head
	right bool   // aligned to the right
}

// text is a column of words, aligned to the left.
func text(name string) column { return column{name: name} }

// number is a column of numbers, aligned to the right.
func number(name string) column { return column{name, true} }

// columnGap is how many spaces are between two columns.
const columnGap = 2

func newTable(w io.Writer, columns ...column) *table {
	return &table{w: w, cols: width(w), styled: styled(w), columns: columns}
}

// add adds a row. What cells hold is made printable on one line.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = label(cell)
	}
	t.rows = append(t.rows, cells)
}

// index finds a column by its name on one line, or returns -1.
func (t *table) index(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return strings.ReplaceAll(c.name, "\n", " ") == name })
}

// cellWidth returns the width of the widest cell of a column, without its head.
func (t *table) cellWidth(at int) int {
	widest := 0
	for _, row := range t.rows {
		widest = max(widest, textWidth(row[at]))
	}
	return widest
}

// widths returns the width of each column.
func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = t.cellWidth(i)
		for line := range strings.SplitSeq(c.name, "\n") {
			widths[i] = max(widths[i], textWidth(line))
		}
	}
	return widths
}

// width returns the width of the longest line.
func (t *table) width() int {
	sum := columnGap * (len(t.columns) - 1)
	for _, n := range t.widths() {
		sum += n
	}
	return sum
}

// fits reports whether the terminal is wide enough. Output that does not go to
// a terminal always fits.
func (t *table) fits() bool { return t.cols == 0 || t.width() <= t.cols }

// drop removes a column, and reports whether there was one.
func (t *table) drop(name string) bool {
	i := t.index(name)
	if i < 0 {
		return false
	}
	t.columns = slices.Delete(t.columns, i, i+1)
	for j, row := range t.rows {
		t.rows[j] = slices.Delete(row, i, i+1)
	}
	return true
}

// dropEmpty removes those of the named columns that have no text.
func (t *table) dropEmpty(names ...string) {
	for _, name := range names {
		if i := t.index(name); i >= 0 && t.cellWidth(i) == 0 {
			t.drop(name)
		}
	}
}

// change replaces the cells of a column.
func (t *table) change(name string, f func(string) string) {
	i := t.index(name)
	if i < 0 {
		return
	}
	for _, row := range t.rows {
		row[i] = f(row[i])
	}
}

// shrink truncates the cells of a column until the table fits, to no less than
// least.
func (t *table) shrink(name string, least int) {
	i := t.index(name)
	if i < 0 || t.fits() {
		return
	}
	n := max(t.cellWidth(i)-(t.width()-t.cols), least)
	for _, row := range t.rows {
		row[i] = truncate(row[i], n)
	}
}

func (t *table) print() {
	widths := t.widths()
	for _, head := range t.head() {
		fmt.Fprintln(t.w, style(t.styled, bold, t.line(head, widths)))
	}
	for _, row := range t.rows {
		fmt.Fprintln(t.w, t.line(row, widths))
	}
}

// head returns the lines of the head. Names with fewer lines than others are on
// the last ones.
func (t *table) head() [][]string {
	var head [][]string
	for i, c := range t.columns {
		lines := strings.Split(c.name, "\n")
		for len(head) < len(lines) && c.name != "" {
			head = append([][]string{make([]string, len(t.columns))}, head...)
		}
		for j := range lines {
			if c.name != "" {
				head[len(head)-len(lines)+j][i] = lines[j]
			}
		}
	}
	return head
}

// line returns a row with its cells padded.
func (t *table) line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		pad := strings.Repeat(" ", widths[i]-textWidth(cell))
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		if t.columns[i].right {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	line := strings.TrimRight(b.String(), " ")
	if t.cols > 0 {
		line = ansi.Truncate(line, t.cols, "…")
	}
	return line
}

// printList prints a list as JSON under a name, as a table, or none instead of an empty
// table.
func printList[T any](w io.Writer, asJSON bool, name string, list []T, none string, columns []column, cells func(*T) []string) error {
	if asJSON {
		return printJSON(w, map[string]any{name: slices.Concat([]T{}, list)}) // not null
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := newTable(w, columns...)
	for i := range list {
		t.add(cells(&list[i])...)
	}
	t.print()
	return nil
}
