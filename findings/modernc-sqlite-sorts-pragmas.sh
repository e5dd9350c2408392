#!/bin/sh
# modernc.org/sqlite 1.60.0 (Go): pragmas of a data source name do not run in the order in which they are written.
#
# The driver sorts the values of _pragma by name, with busy_timeout first. auto_vacuum then runs before page_size and writes the
# first page of a new file, after which SQLite ignores page_size. The same two statements in the written order work. So a store
# that asks for small pages in its data source name silently has pages of 4096 bytes.
#
# Output seen on 2026-11-28:
#   in the data source name: pages of 4096 bytes
#   as statements:           pages of 2048 bytes
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	_ "modernc.org/sqlite"
)

// pages makes a file by statements and returns the size of its pages.
func pages(source string, statements ...string) (size int) {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	c, err := db.Conn(context.Background())
	if err != nil {
		panic(err)
	}
	defer c.Close()
	for _, s := range append(statements, "CREATE TABLE t (x)") {
		if _, err := c.ExecContext(context.Background(), s); err != nil {
			panic(err)
		}
	}
	if err := c.QueryRowContext(context.Background(), "PRAGMA page_size").Scan(&size); err != nil {
		panic(err)
	}
	return size
}

func main() {
	named := pages("file:named.db?_pragma=page_size(2048)&_pragma=auto_vacuum(2)")
	stated := pages("file:stated.db", "PRAGMA page_size = 2048", "PRAGMA auto_vacuum = 2")
	fmt.Printf("in the data source name: pages of %d bytes\n", named)
	fmt.Printf("as statements:           pages of %d bytes\n", stated)
	if named != 4096 || stated != 2048 {
		os.Exit(1)
	}
}
GO
cat >go.mod <<'MOD'
module finding

go 1.25

require modernc.org/sqlite v1.60.0
MOD
go mod tidy >/dev/null 2>&1
go run .
