package furl

// Sealed is an encrypted record, as a store keeps it. Package encrypted makes
// and opens it; a log never has one. Seq and Parent of its Record are those of
// the record inside, and Chain is a keyed digest of that one's.
type Sealed struct {
	// Message says that the record inside is a message, and Size is its size in
	// bytes on the wire.
	Message bool
	Size    int
	Data    []byte
}

func (*Sealed) body() {}
