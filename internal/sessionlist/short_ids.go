package sessionlist

import (
	"cmp"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/storage"
)

// shortID is the least length of a shortened session id.
const shortID = 8

// ShortIDs returns the shortest beginning of each session's id by which commands find
// the session.
func ShortIDs(all []storage.SessionInfo) map[furl.SessionID]string {
	type named struct {
		name string
		of   furl.SessionID
	}
	var list []named
	for i := range all {
		list = append(list, named{string(all[i].Session), all[i].Session})
		if own := agents.OwnID(all[i].Hint, ""); own != "" && own != string(all[i].Session) {
			list = append(list, named{own, all[i].Session})
		}
	}
	slices.SortFunc(list, func(a, b named) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(string(a.of), string(b.of)))
	})
	short := make(map[furl.SessionID]string, len(all))
	for i, n := range list {
		if n.name != string(n.of) {
			continue
		}
		size := shortID
		if strings.HasPrefix(n.name, "session-") || strings.HasPrefix(n.name, "session_") {
			size += len("session-")
		}
		for _, step := range []int{-1, 1} {
			j := i + step
			for j >= 0 && j < len(list) && list[j].of == n.of {
				j += step
			}
			if j >= 0 && j < len(list) {
				size = max(size, commonPrefix(n.name, list[j].name)+1)
			}
		}
		short[n.of] = n.name[:min(size, len(n.name))]
	}
	return short
}

// commonPrefix returns the length of the beginning that two strings share.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
