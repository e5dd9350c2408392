package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// words are what the invented texts are made of: such as are in source, logs
// and in what agents say.
var words = strings.Fields(`the of to and if err nil return func range string int byte context request session
	message record store append block digest token window budget policy plan view reduce restore cache write read
	index value field table column query search result handle upstream client header body stream event chunk first
	last next before after because which when where file path line error warning info debug test check build make
	package import type struct interface method package main server gateway connection timeout retry closed open`)

// lines gives about n bytes of text in lines, as tools print: with names and
// numbers that do not repeat, so that it compresses as real output does.
func lines(r *rand.Rand, n int) string {
	var b strings.Builder
	b.Grow(n + 80)
	for line := 1; b.Len() < n; line++ {
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(&b, "%5d\t", line)
		case 1:
			b.WriteString("\t\t")
		case 2:
			fmt.Fprintf(&b, "%s/%s_%d.go:%d: ", pick(r), pick(r), r.IntN(1000), r.IntN(2000))
		}
		for range 4 + r.IntN(9) {
			b.WriteString(pick(r))
			switch r.IntN(9) {
			case 0:
				fmt.Fprintf(&b, "_%s(%q)", pick(r), pick(r))
			case 1:
				fmt.Fprintf(&b, ".%s%x", pick(r), r.Uint32()>>uint(r.IntN(20)))
			case 2:
				b.WriteString(" := ")
			}
			b.WriteByte(' ')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// prose gives about n bytes of words.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(pick(r))
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func pick(r *rand.Rand) string { return words[r.IntN(len(words))] }

// secret gives n letters and digits, as signatures are.
func secret(r *rand.Rand, n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[r.IntN(len(letters))]
	}
	return string(out)
}

// source gives the numbers for one thing, the same ones each time.
func source(kind, n uint64) *rand.Rand { return rand.New(rand.NewPCG(kind, n)) }
