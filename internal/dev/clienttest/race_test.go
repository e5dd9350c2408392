//go:build race

package clienttest

const race = true
