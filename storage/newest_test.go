package storage

import (
	"testing"
	"time"
)

// TestNewest holds when a session counts as used last: an imported one when it
// was recorded, until something is added to it here.
func TestNewest(t *testing.T) {
	stored := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	recorded := stored.Add(-1000 * time.Hour)
	for _, tt := range []struct {
		name string
		meta Meta
		want time.Time
	}{
		{"recorded here", Meta{}, stored},
		{"imported", Meta{Imported: 5, Recorded: recorded}, recorded},
		{"imported in part so far", Meta{Imported: 9, Recorded: recorded}, recorded},
		{"imported and gone on with", Meta{Imported: 4, Recorded: recorded}, stored},
		{"imported without times", Meta{Imported: 5}, stored},
		{"recorded by a clock ahead", Meta{Imported: 5, Recorded: stored.Add(time.Hour)}, stored},
	} {
		info := SessionInfo{Meta: tt.meta, Records: 5, Updated: stored}
		if got := info.Newest(); !got.Equal(tt.want) {
			t.Errorf("%s: Newest() = %v, want %v", tt.name, got, tt.want)
		}
	}
}
