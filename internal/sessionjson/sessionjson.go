// Package sessionjson has the JSON of a session in lists, which the command prints and
// the gateway's API returns.
package sessionjson

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/storage"
)

// Session is a session in a list.
type Session struct {
	furl.SessionID `json:"session"`
	storage.Meta
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Newest   time.Time `json:"newest"`
	Records  furl.Seq  `json:"records"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`
}

// Of converts a store's description of a session. Agents have one name, also in stores
// of earlier versions.
func Of(i storage.SessionInfo) Session {
	i.Client = agents.Name(i.Client)
	return Session{i.Session, i.Meta, i.Created, i.Updated, i.Newest(), i.Records, i.Messages, i.Bytes}
}
