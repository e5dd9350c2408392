//go:build !unix

package main

import "os"

// profileSignal does not exist here.
var profileSignal os.Signal = os.Kill
