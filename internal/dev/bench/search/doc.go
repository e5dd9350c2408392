// Package search measures search: what package recall finds compared with
// SQLite's full-text search on the same texts, how long a search takes in a
// large store, and how the stores compare with one another. It has benchmarks
// only; docs/use/recall.md and docs/operate/stores.md have the results.
package search
