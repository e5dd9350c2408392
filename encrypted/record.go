package encrypted

import (
	"encoding/binary"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
)

// An encrypted record contains the length of its head as a varint, twice that
// plus one if it has a body, the head and the body, as record.Encode gives them.

func (k *keys) sealRecord(session furl.SessionID, r *furl.Record) (furl.Record, error) {
	if _, ok := r.Body.(*furl.Sealed); ok {
		return furl.Record{}, fmt.Errorf("record %d is encrypted already", r.Seq)
	}
	head, body, err := record.Encode(*r)
	if err != nil {
		return furl.Record{}, err
	}
	n := uint64(len(head)) << 1
	if body != nil {
		n |= 1
	}
	plain := make([]byte, 0, binary.MaxVarintLen64+len(head)+len(body))
	plain = append(append(binary.AppendUvarint(plain, n), head...), body...)
	out := furl.Record{Seq: r.Seq, Parent: r.Parent}
	sealed := &furl.Sealed{}
	if sealed.Size, sealed.Message = record.MessageSize(r); sealed.Message && !r.Chain.IsZero() {
		out.Chain = k.chains.of(r.Chain[:])
	}
	sealed.Data = k.seal(recordPlace(session, &out), plain)
	out.Body = sealed
	return out, nil
}

func recordPlace(session furl.SessionID, r *furl.Record) place {
	return place{kind: recordKind, session: session, a: uint64(r.Seq), b: uint64(r.Parent)}
}

func (k *keys) openRecord(session furl.SessionID, r *furl.Record) (out furl.Record, err error) {
	plain, err := k.open(nil, recordPlace(session, r), r.Body.(*furl.Sealed).Data)
	if err != nil {
		return out, fmt.Errorf("record %d: %w", r.Seq, err)
	}
	n, size := binary.Uvarint(plain)
	length, has := n>>1, n&1 == 1
	if size <= 0 || length > uint64(len(plain)-size) {
		return out, fmt.Errorf("record %d: %w: cut off", r.Seq, furl.ErrDamaged)
	}
	head, body := plain[size:size+int(length)], plain[size+int(length):]
	if !has {
		body = nil
	}
	if out, err = record.Decode(head, body); err != nil {
		return out, err
	}
	if out.Seq != r.Seq || out.Parent != r.Parent {
		return furl.Record{}, fmt.Errorf("record %d: found record %d inside: %w", r.Seq, out.Seq, furl.ErrDamaged)
	}
	return out, nil
}
