package storage

import "context"

// Pinger is the ability to tell at little cost whether a store can be used.
type Pinger interface {
	// Ping returns nil if sessions can be used: all, or those on the servers that respond.
	// It does not wait longer than ctx.
	Ping(ctx context.Context) error
}

// Ping returns an error if a store cannot be read. It looks up a session that no store
// has, unless the store is a Pinger: a lookup in an index costs the same however many
// sessions there are.
func Ping(ctx context.Context, s Store) error {
	if p, ok := s.(Pinger); ok {
		return p.Ping(ctx)
	}
	for _, err := range s.Sessions(ctx, "", SessionQuery{Hint: "ping", Limit: 1}) {
		if err != nil {
			return err
		}
	}
	return nil
}
