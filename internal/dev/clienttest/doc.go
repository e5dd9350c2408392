// Package clienttest runs real clients against furl serve, with furl sim as
// their provider: the SDKs of both providers for Go and for JavaScript, the AI
// SDK, and coding agents as their users run them. Each works in a tool loop
// that is several times its window, loses the gateway in the middle of it, and
// is resumed later.
//
// The clients for JavaScript are npm packages, pinned in testdata, where
// "make clients" installs them. Without them their tests skip.
package clienttest
