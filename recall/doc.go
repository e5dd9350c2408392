// Package recall finds blocks of sessions by their text: lexical search with
// BM25, optionally combined with vectors. It is how people and models find what a
// view does not show. docs/use/recall.md describes it.
//
// A Searcher searches a store. An Indexer keeps the store's search index up to
// date; without it searches return the same hits, but slower. Index is a search
// index of one session in memory, without a store. A Handle names a block or a
// message, such as "furl:12.3".
//
// To read the code, follow a document into the index:
//
//	analyzer.go         a text becomes tokens; normalizer.go, stopwords.go
//	index.go            the inverted index in memory; infix_table.go
//	memory_segment.go   records become documents of a segment in memory; document.go
//	segment.go          a segment becomes pages, segments are merged; postings.go,
//	                    term_dictionary.go, vocabulary.go, grams.go, page.go
//	segment_reader.go   pages become segments
//	indexer.go          which records are indexed when; indexer_errors.go
//
// and then a query:
//
//	request.go          what is asked for and what is returned; handle.go, range.go
//	searcher.go         the search as a whole; repair.go
//	query_parser.go     a query becomes terms
//	snapshot.go         the sessions in scope; term_lookup.go, infix.go
//	scorer.go           BM25
//	collector.go        the best documents without scoring all of them
//	fusion.go           ranks by words and by meaning become one; vectors.go
//	highlighter.go      the excerpt of a hit
package recall
