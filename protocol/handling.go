package protocol

// Handling says what furl does with a type of block or item. Each format has a table of
// the types that its provider documents.
type Handling uint8

const (
	// Unknown types are in no table. They are always sent where they are, with their
	// whole step, and are reported.
	Unknown Handling = iota
	// Decoded types have a kind of block.
	Decoded
	// Passed types are opaque blocks that are complete by themselves. They are hidden
	// with their step.
	Passed
	// Paired types are opaque blocks that belong to another opaque block.
	Paired
	// Definition types define tools or change settings for what follows. They are
	// always sent where they are, with their whole step.
	Definition
	// Pinned types are documented, but furl has no rule for what they belong to. They
	// are sent like Unknown types, and not reported.
	Pinned
)

// Fixed reports whether blocks of a type with this handling are Block.Fixed.
func (h Handling) Fixed() bool { return h == Unknown || h == Definition || h == Pinned }
