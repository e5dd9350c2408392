// Package htmx is htmx, the library that loads parts of furl's pages, as a copy of its npm
// package: https://github.com/bigskysoftware/htmx, Zero-Clause BSD license. "make htmx"
// fetches the pinned version again; SHA256SUMS pins the files.
package htmx

import _ "embed"

// Version is the version of the npm package htmx.org. The Makefile reads it.
const Version = "2.0.11"

//go:embed LICENSE
var license string

//go:embed htmx.min.js
var library string

// Script defines the global htmx. It begins with the license.
func Script() string { return "/*\nhtmx " + Version + "\n" + license + "*/\n" + library }
