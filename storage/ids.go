package storage

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// ValidID reports whether id can name a session.
func ValidID(id furl.SessionID) bool {
	return hasIDCharacters(id) && !reserved(id)
}

// ReservedID reports whether id has the characters of a session's id and
// cannot be one all the same, because it means something else wherever an id is
// given: "latest" in any case, the newest session; what begins with a dash, a
// flag; dots alone, a folder.
func ReservedID(id furl.SessionID) bool {
	return hasIDCharacters(id) && reserved(id)
}

func reserved(id furl.SessionID) bool {
	return id[0] == '-' || strings.Trim(string(id), ".") == "" || strings.EqualFold(string(id), "latest")
}

// UnreservedID returns the id that a session with a reserved one gets
// instead: session-, what can be kept of id, and eight digits that depend on
// id. Try is 0, or the number of ids that were taken already.
func UnreservedID(id furl.SessionID, try int) furl.SessionID {
	const begin, digits = "session-", 8
	kept := strings.Trim(string(id), "-.")
	kept = kept[:min(len(kept), maxSessionID-len(begin)-digits-1)]
	if kept != "" {
		kept += "-"
	}
	sum := furl.DigestOf(fmt.Appendf(nil, "%s %d", id, try))
	return furl.SessionID(fmt.Sprintf("%s%s%x", begin, kept, sum[:digits/2]))
}

// Renamed is a session that got another id because its own is reserved.
type Renamed struct {
	Tenant  furl.Tenant
	Was, Is furl.SessionID
}

// Renamer is the ability of a store to tell which sessions it has renamed when
// it was opened: earlier versions of furl took ids that are reserved now.
type Renamer interface{ Renamed() []Renamed }

// maxSessionID is the length of the longest id, in bytes.
const maxSessionID = 128

func hasIDCharacters(id furl.SessionID) bool {
	if len(id) == 0 || len(id) > maxSessionID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}
