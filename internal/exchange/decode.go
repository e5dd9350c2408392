package exchange

import (
	"errors"

	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/protocol"
)

// Decode is codec.DecodeRequest with a cache: messages at the start that an earlier
// request of the tenant also had are not decoded again. It sets Chains of the
// request. Errors are those of the codec.
func (a *Sessions) Decode(codec protocol.Codec, body []byte) (*protocol.Request, error) {
	return a.decode(codec, body, nil)
}

// errNotReserved is wrapped by the error of a request that was not decoded because there is
// no memory for it.
var errNotReserved = errors.New("memory for a request")

// decode is Decode after reserving memory. reserve may be nil; its error is wrapped with
// errNotReserved.
func (a *Sessions) decode(codec protocol.Codec, body []byte, reserve clients.Reserve) (*protocol.Request, error) {
	key := clients.DecodeKey{Tenant: a.Tenant(), Format: codec.Format()}
	req, err := a.Clients().Decodes.Decode(key, codec, body, reserve)
	if err == nil && req == nil && reserve != nil {
		err = reserve(clients.MemoryOf(body))
	}
	if err != nil {
		return nil, errors.Join(errNotReserved, err)
	}
	if req != nil {
		return req, nil
	}
	if req, err = codec.DecodeRequest(body); err != nil {
		return nil, err
	}
	req.Chains = chainsOf(req.Messages)
	if req.Ambiguous != "" {
		return req, nil // a cached prefix would hide the ambiguity in the next request
	}
	a.Clients().Decodes.Add(key, req)
	return req, nil
}
