package sim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/furlhq/furl"
)

// seal is the content of a signature: what the thinking followed. It is
// signed with a fixed key, so that a sim accepts the signatures of another
// sim, and its own after a restart.
type seal struct {
	model  [8]byte // digest of its name
	prefix prefix  // of everything before it, except thinking
	link   [8]byte // of the previous thinking block; zero if there was none
	reply  [8]byte // identifies the reply
	index  uint8   // among the thinking blocks of that reply
	of     uint8   // number of thinking blocks in the reply
}

// sealBytes is the length of a seal before its MAC.
const sealBytes = 8 + 16 + 8 + 8 + 2

// sealKey is not a secret: it only protects tests from mistakes.
var sealKey = []byte("furl sim signs thinking with this key")

func (s *seal) append(b []byte) []byte {
	b = append(b, s.model[:]...)
	b = append(b, s.prefix[:]...)
	b = append(b, s.link[:]...)
	b = append(b, s.reply[:]...)
	return append(b, s.index, s.of)
}

// sign returns the signature of a text. Signatures for different roles
// (thinking, a summary) are not interchangeable.
func (s *seal) sign(role, text string) string {
	b := s.append(make([]byte, 0, sealBytes+sha256.Size))
	return base64.StdEncoding.EncodeToString(mac(b, role, text))
}

func mac(b []byte, role, text string) []byte {
	h := hmac.New(sha256.New, sealKey)
	h.Write(b)
	h.Write([]byte(role))
	h.Write([]byte{0})
	h.Write([]byte(text))
	return h.Sum(b)
}

// open checks a signature of a text and returns its content.
func open(role, text, signature string) (s seal, ok bool) {
	if len(signature) > 2*(sealBytes+sha256.Size) {
		return s, false
	}
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(b) != sealBytes+sha256.Size || !hmac.Equal(b, mac(b[:sealBytes:sealBytes], role, text)) {
		return s, false
	}
	rest := b
	for _, to := range [][]byte{s.model[:], s.prefix[:], s.link[:], s.reply[:]} {
		rest = rest[copy(to, rest):]
	}
	s.index, s.of = rest[0], rest[1]
	return s, true
}

// linkTo returns how a later block refers to the one with this signature.
func linkTo(signature string) (l [8]byte) {
	sum := sha256.Sum256([]byte(signature))
	copy(l[:], sum[:])
	return l
}

func modelMark(id string) (m [8]byte) {
	sum := sha256.Sum256([]byte(id))
	copy(m[:], sum[:])
	return m
}

// prefix identifies a prompt up to some point, except thinking.
type prefix = [16]byte

// extend chains a prefix by one block.
func extend(p prefix, block furl.Digest) (out prefix) {
	var b [len(p) + len(block)]byte
	copy(b[:], p[:])
	copy(b[len(p):], block[:])
	sum := sha256.Sum256(b[:])
	copy(out[:], sum[:])
	return out
}

func (c *call) replyMark() (m [8]byte) {
	binary.LittleEndian.PutUint64(m[:], c.rng.Uint64())
	return m
}
