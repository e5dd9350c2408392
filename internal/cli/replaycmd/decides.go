package replaycmd

import (
	"crypto/sha256"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/packed"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/replay"
)

// decides returns a hash of all that decides the outcome for a recording, besides the recording and
// the program: under this key the index keeps it. ok is false if that cannot be told.
func (f *replayFlags) decides(o *replay.Options, configFile string) (key string, ok bool) {
	config, ok := cmdline.HashOf(configFile) // it has the options of policies, and the windows of models
	if !ok {
		return "", false
	}
	catalog, ok := cmdline.HashOf(f.CatalogFile())
	if !ok {
		return "", false
	}
	sum := sha256.Sum256(packed.Marshal(struct {
		Config, Catalog       string
		Candidates            []string
		Windows               []int
		KeepAlive             int
		HourCache             protocol.HourCache
		Model                 string
		Prices                furl.Prices
		CacheRead, CacheWrite *float64
		CacheLifetime         time.Duration
		Recall                bool
	}{config, catalog, candidateNames(o.Candidates), o.Windows, o.KeepAlive, o.HourCache, o.Model, o.Prices, o.CacheRead, o.CacheWrite, o.CacheLifetime, o.Recall}))
	return string(sum[:]), true
}
