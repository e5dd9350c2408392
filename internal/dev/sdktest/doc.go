// Package sdktest runs the providers' own Go clients against what furl serves.
// They parse strictly, so what they take is in the provider's shape. The
// clients are heavy to build, and are in a package of their own so that no
// other test waits for them.
package sdktest
