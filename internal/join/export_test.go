package join

import "github.com/furlhq/furl"

// Compare reports how many replies of a recording a session has.
func Compare(session, recording *furl.Log) Result { return newJoiner(session, recording).result }
