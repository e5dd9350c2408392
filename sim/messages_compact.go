package sim

import (
	"github.com/furlhq/furl"
)

func isCompaction(b *furl.Block) bool { return b.Kind == furl.KindOpaque && b.Name == "compaction" }

// compacted takes a summary of the provider's own: what stands before it is
// not read any more. It gives what thinking behind it is bound to.
func (c *call) compacted(i int, at *part, m *furl.Message, b *furl.Block, preamble prefix) (prefix, *furl.Refusal) {
	return extend(preamble, at.digest), nil
}

// compactAt summarises once the prompt is long enough.
func (c *call) compactAt(e *edit) *furl.Refusal { return nil }
