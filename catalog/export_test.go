package catalog

import (
	"maps"
	"slices"
)

// Keys lists the keys of an entry.
func Keys() []string {
	return slices.Sorted(maps.Keys(modelFields))
}
