// Package uplot is uPlot, the library that draws the charts of furl's pages,
// as a copy of its npm package: https://github.com/leeoniya/uPlot, MIT license.
// "make uplot" fetches the pinned version again; SHA256SUMS pins the files.
package uplot

import _ "embed"

// Version is the version of the npm package. The Makefile reads it.
const Version = "1.6.32"

//go:embed LICENSE
var license string

//go:embed uPlot.iife.min.js
var library string

// Style is the style sheet that charts need.
//
//go:embed uPlot.min.css
var Style string

// Script defines the global uPlot. It begins with the license, which has to be
// in every copy and therefore in every page.
func Script() string { return "/*\nuPlot " + Version + "\n" + license + "*/\n" + library }
