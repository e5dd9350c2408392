package cmdline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Table is rows of cells whose columns line up. On a terminal its head is bold
// and its lines are no longer than the terminal is wide.
type Table struct {
	w       io.Writer
	Cols    int  // of the terminal, 0 if w is not a terminal
	styled  bool // w shows styles
	columns []Column
	Rows    [][]string
}

// Column is a column of a table. If no column has a name, the table has no
// head.
type Column struct {
	name  string // a line break in it starts another line of the head
	right bool   // aligned to the right
}

// Text is a column of words, aligned to the left.
func Text(name string) Column { return Column{name: name} }

// Number is a column of numbers, aligned to the right.
func Number(name string) Column { return Column{name, true} }

// columnGap is how many spaces are between two columns.
const columnGap = 2

// NewTable returns an empty table.
func NewTable(w io.Writer, columns ...Column) *Table {
	return &Table{w: w, Cols: Width(w), styled: Styled(w), columns: columns}
}

// Add adds a row. What cells hold is made printable on one line.
func (t *Table) Add(cells ...string) {
	for i, cell := range cells {
		cells[i] = Label(cell)
	}
	t.Rows = append(t.Rows, cells)
}

// index finds a column by its name on one line, or returns -1.
func (t *Table) index(name string) int {
	return slices.IndexFunc(t.columns, func(c Column) bool { return strings.ReplaceAll(c.name, "\n", " ") == name })
}

// cellWidth returns the width of the widest cell of a column, without its head.
func (t *Table) cellWidth(at int) int {
	widest := 0
	for _, row := range t.Rows {
		widest = max(widest, textWidth(row[at]))
	}
	return widest
}

// widths returns the width of each column.
func (t *Table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = t.cellWidth(i)
		for line := range strings.SplitSeq(c.name, "\n") {
			widths[i] = max(widths[i], textWidth(line))
		}
	}
	return widths
}

// Width returns the width of the longest line.
func (t *Table) Width() int {
	sum := columnGap * (len(t.columns) - 1)
	for _, n := range t.widths() {
		sum += n
	}
	return sum
}

// Fits reports whether the terminal is wide enough. Output that does not go to
// a terminal always fits.
func (t *Table) Fits() bool { return t.Cols == 0 || t.Width() <= t.Cols }

// Drop removes a column, and reports whether there was one.
func (t *Table) Drop(name string) bool {
	i := t.index(name)
	if i < 0 {
		return false
	}
	t.columns = slices.Delete(t.columns, i, i+1)
	for j, row := range t.Rows {
		t.Rows[j] = slices.Delete(row, i, i+1)
	}
	return true
}

// DropEmpty removes those of the named columns that have no text.
func (t *Table) DropEmpty(names ...string) {
	for _, name := range names {
		if i := t.index(name); i >= 0 && t.cellWidth(i) == 0 {
			t.Drop(name)
		}
	}
}

// Change replaces the cells of a column.
func (t *Table) Change(name string, f func(string) string) {
	i := t.index(name)
	if i < 0 {
		return
	}
	for _, row := range t.Rows {
		row[i] = f(row[i])
	}
}

// Shrink truncates the cells of a column until the table fits, to no less than
// least.
func (t *Table) Shrink(name string, least int) {
	i := t.index(name)
	if i < 0 || t.Fits() {
		return
	}
	n := max(t.cellWidth(i)-(t.Width()-t.Cols), least)
	for _, row := range t.Rows {
		row[i] = Truncate(row[i], n)
	}
}

// Print prints the table.
func (t *Table) Print() {
	widths := t.widths()
	for _, head := range t.head() {
		fmt.Fprintln(t.w, Style(t.styled, Bold, t.line(head, widths)))
	}
	for _, row := range t.Rows {
		fmt.Fprintln(t.w, t.line(row, widths))
	}
}

// head returns the lines of the head. Names with fewer lines than others are on
// the last ones.
func (t *Table) head() [][]string {
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
func (t *Table) line(row []string, widths []int) string {
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
	if t.Cols > 0 {
		line = ansi.Truncate(line, t.Cols, "…")
	}
	return line
}

// PrintList prints a list as JSON under a name, as a table, or none instead of an empty
// table.
func PrintList[T any](w io.Writer, asJSON bool, name string, list []T, none string, columns []Column, cells func(*T) []string) error {
	if asJSON {
		return PrintJSON(w, map[string]any{name: append([]T{}, list...)}) // not null
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := NewTable(w, columns...)
	for i := range list {
		t.Add(cells(&list[i])...)
	}
	t.Print()
	return nil
}
