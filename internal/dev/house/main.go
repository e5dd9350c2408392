// Command house counts what tells how simple the code is: lines, exported
// identifiers, words of documentation, files that compare formats, and what
// one request runs. Run it with "make house".
package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	src, err := parse(root)
	if err != nil {
		return err
	}
	docs, err := docWords(root)
	if err != nil {
		return err
	}
	words, err := foreignWords(root)
	if err != nil {
		return err
	}
	functions, files, err := requestPath(root)
	if err != nil {
		return err
	}
	comparing := src.compareFormats()
	public, packages := src.exported()

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "lines of Go with comments, without tests and internal/dev\t%d\n", src.lines())
	fmt.Fprintf(w, "  internal/cli with its folder\t%d\n", src.linesIn("internal/cli/"))
	fmt.Fprintf(w, "code lines outside tests, without comments and blanks\t%d\n", src.codeLines())
	fmt.Fprintf(w, "exported identifiers with methods, public packages\t%d\n", public)
	for _, p := range packages {
		fmt.Fprintf(w, "  %s\t%d\n", p.name, p.count)
	}
	fmt.Fprintf(w, "words of go doc -all .\t%d\n", docs)
	fmt.Fprintf(w, "files that compare formats\t%d\n", len(comparing))
	fmt.Fprintf(w, "functions that one gateway request runs\t%d\n", functions)
	fmt.Fprintf(w, "  in files\t%d\n", files)
	total := 0
	for _, c := range words {
		total += c.count
	}
	fmt.Fprintf(w, "foreign words in Go and Markdown\t%d\n", total)
	for _, c := range words {
		fmt.Fprintf(w, "  %s\t%d\n", c.name, c.count)
	}
	fmt.Fprintf(w, "lines of Go, counted by hand: %s\t\n", byHand)
	for _, f := range comparing {
		fmt.Fprintf(w, "compares formats: %s\t\n", f)
	}
	return w.Flush()
}
