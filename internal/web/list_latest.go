package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/furlhq/furl/storage"
)

// To find the newest session with hidden content, the records of at least minLatestRead
// sessions are read, and of more until maxLatestTime has passed. The browser asks again then,
// at most maxLatestAgain times.
const (
	minLatestRead  = 12
	maxLatestTime  = time.Second
	maxLatestAgain = 8
)

// latestPart is the newest session with hidden content, nil if it is not known. If Again is
// set, the browser asks again, for the Again-th time.
type latestPart struct {
	Latest *listed
	Again  int
}

// latest responds with the newest session that has hidden content. The list asks for it if
// it does not know the figures of newer sessions, as after an import.
func (p *Page) latest(v *visit) error {
	start := v.p.o.Now()
	var all []storage.SessionInfo
	for info, err := range v.Sessions.List(v.r.Context(), storage.SessionQuery{}) {
		if err != nil {
			return err
		}
		all = append(all, info)
	}
	slices.SortStableFunc(all, func(a, b storage.SessionInfo) int { return b.Newest().Compare(a.Newest()) })
	tree, read := newSessionTree(all), 0
	for i := range all {
		if tree.parents[all[i].Session] != "" {
			continue
		}
		l := v.listed(all[i])
		if l.Hidden < 0 {
			if read++; read > minLatestRead && v.p.o.Now().Sub(start) > maxLatestTime {
				var part latestPart
				if again, _ := strconv.Atoi(v.r.FormValue("again")); again < maxLatestAgain {
					part.Again = max(0, again) + 1
				}
				v.render(http.StatusOK, "latestpart", part)
				return nil
			}
			if err := v.readFigures(all[i].SessionKey); err != nil {
				continue // the list shows it without figures too
			}
			l = v.listed(all[i])
		}
		if l.Hidden > 0 {
			v.render(http.StatusOK, "latestpart", latestPart{Latest: &l})
			return nil
		}
	}
	v.render(http.StatusOK, "latestpart", latestPart{})
	return nil
}
