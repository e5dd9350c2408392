package session

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Stats are statistics of this process: counters since its start, and memory use.
// They are for all tenants unless noted.
type Stats struct {
	// Sessions is the number of sessions in memory, Own that of the tenant, and
	// Bytes their estimated memory.
	Sessions, Own int
	Bytes         int64
	// StoreErrors is the number of store failures while serving requests.
	StoreErrors int64
	// StoreRefuses reports whether the last append failed, within the last
	// minute. Requests are then sent and not recorded.
	StoreRefuses bool
	// ReadySummaries is the number of summaries that are ready and not recorded yet.
	ReadySummaries int
	// LateSummaries is the number of summaries that were ready and never used,
	// LateCost their cost in US dollars.
	LateSummaries int
	LateCost      float64
	// Savings are the savings of the requests that this process has recorded, by
	// session, of at most 1,000 sessions.
	Savings map[furl.SessionKey]storage.Savings
	// UnknownWindows is the number of requested models whose context window is
	// not known from the options, the provider or the catalog.
	UnknownWindows int
	// UnknownTypes is the number of requests with types of blocks and items that furl
	// does not know, by type, of at most 41 types.
	UnknownTypes map[string]int
	// AssumedModels is the number of requested models that the catalog lacks and whose
	// rules are assumed from their family.
	AssumedModels int
}

// Stats returns statistics of this process.
func (a *Sessions) Stats() Stats {
	in := a.open
	st := Stats{
		StoreErrors: in.StoreErrors(), StoreRefuses: in.StoreRefuses(), Savings: in.Savings(),
		UnknownWindows: in.UnknownWindows(), UnknownTypes: in.UnknownTypes(), AssumedModels: in.AssumedModels(),
	}
	st.LateSummaries, st.LateCost = in.LateSummaries()
	st.Sessions, st.Own, st.ReadySummaries, st.Bytes = in.Count()
	return st
}

// KnownModel returns the catalog's id of a model by its name in requests, "" if the
// catalog does not have it.
func (a *Sessions) KnownModel(name string) string {
	if m, ok := a.open.CatalogModel(name); ok && m.Like == "" {
		return m.ID
	}
	return ""
}
