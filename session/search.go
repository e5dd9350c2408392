package session

import (
	"cmp"
	"context"
	"slices"

	"github.com/furlhq/furl"
)

// Search finds blocks in all sessions of the tenant, best first: in Everything
// they hold, whatever the options' scope.
func (a *Sessions) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	o.Scope = Everywhere
	var hits []Hit
	for info, err := range a.store.Sessions(ctx, a.tenant, furl.SessionQuery{}) {
		if err != nil {
			return nil, err
		}
		s, err := a.Open(ctx, info.Session)
		if err != nil {
			return nil, err
		}
		found, err := s.Search(ctx, query, o)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	slices.SortStableFunc(hits, func(x, y Hit) int { return cmp.Compare(y.Score, x.Score) })
	return hits[:min(len(hits), cmp.Or(o.Limit, 5))], nil
}
