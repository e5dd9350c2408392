package follow

import "errors"

// errLocked means that another process has the lock.
var errLocked = errors.New("another process follows")
