package recall

import (
	"context"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/lexer"
)

// Limits of a search for words with letters swapped.
const (
	maxSwappedRuns = 4  // of the query
	minSwapped     = 4  // characters of a word
	maxSwapped     = 32 // characters of a word
)

// swapped returns the text of a request in which nothing matches, with two neighboring
// letters of its words swapped where a block in scope then has the word; "" if there
// is no such word. Of several, it takes the one that most blocks have.
func (s *Searcher) swapped(ctx context.Context, req *Request, counts damageCounts) (string, error) {
	text, last, found, tried := "", 0, false, 0
	for run := range runs(req.Text) {
		n := utf8.RuneCountInString(run.text)
		if n < minSwapped || n > maxSwapped {
			continue
		}
		if tried++; tried > maxSwappedRuns {
			break
		}
		better, err := s.commonest(ctx, req, swaps(run.text), counts)
		if err != nil {
			return "", err
		}
		if better != "" {
			text, last, found = text+req.Text[last:run.from]+better, run.to, true
		}
	}
	if !found {
		return "", nil
	}
	return text + req.Text[last:], nil
}

// swaps returns the words that a word becomes by swapping two neighboring characters.
func swaps(word string) (all []string) {
	chars := []rune(word)
	for i := 1; i < len(chars); i++ {
		if chars[i-1] == chars[i] {
			continue
		}
		chars[i-1], chars[i] = chars[i], chars[i-1]
		all = append(all, string(chars))
		chars[i-1], chars[i] = chars[i], chars[i-1]
	}
	return all
}

// commonest returns the word that most blocks in scope have; "" if none has one.
func (s *Searcher) commonest(ctx context.Context, req *Request, words []string, counts damageCounts) (string, error) {
	q := query{}
	numbers := make(map[term]int)
	of := make([]int, len(words)) // the term of each word
	for i, word := range words {
		t := token{text: normalize(word), kind: wordToken}
		if lexer.IsName(word) {
			t = token{text: word, kind: nameToken}
		}
		n, ok := numbers[t.term()]
		if !ok {
			n = len(q.terms)
			numbers[t.term()] = n
			q.terms = append(q.terms, t)
		}
		of[i] = n
	}
	snap, err := s.snapshot(ctx, req, &q, counts)
	if err != nil {
		return "", err
	}
	docs := make([]int, len(q.terms))
	for l := range snap.corpus.leaves {
		for n, lists := range snap.corpus.leaves[l].postings {
			for _, p := range lists {
				for doc := range p.each {
					if snap.selects(l, doc) {
						docs[n]++
					}
				}
			}
		}
	}
	best := ""
	most := 0
	for i, word := range words {
		if n := docs[of[i]]; n > most {
			best, most = word, n
		}
	}
	return best, snap.err
}
