package sim

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl/protocol"
)

// newCall starts a request.
func (s *Sim) newCall(w http.ResponseWriter, r *http.Request) *call {
	n := s.turns.request(r.Method)
	c := &call{
		sim:    s,
		r:      r,
		number: n,
		at:     s.opts.Now(),
		rng:    rand.New(rand.NewPCG(s.opts.Seed, n)),
	}
	c.id = c.newID("req_", 24)
	c.w = &answerWriter{ResponseWriter: w, keep: s.opts.KeepBodies}
	c.entry = Entry{At: c.at, Method: r.Method, Path: r.URL.Path, Verdict: VerdictOK, Status: http.StatusOK}
	if s.opts.KeepBodies {
		c.entry.Header = r.Header.Clone()
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization"} {
			c.entry.Header.Del(name)
		}
	}
	return c
}

const idLetters = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// newID returns an id that is unique in the sim.
func (c *call) newID(prefix string, letters int) string {
	b := []byte(prefix + "01")
	for range letters - 2 {
		b = append(b, idLetters[c.rng.IntN(len(idLetters))])
	}
	return string(b)
}

// newCallID returns an id of a call that the request does not have. A conversation may
// have begun with another sim of the same seed.
func (c *call) newCallID() string {
	for {
		id := c.api.callID(c)
		if c.req == nil || !bytes.Contains(c.req.Body, []byte(id)) {
			return id
		}
	}
}

// hexID returns an id in OpenAI's style.
func (c *call) hexID(prefix string) string {
	return fmt.Sprintf("%s%016x%016x%08x", prefix, c.number, c.rng.Uint64(), c.rng.Uint32())
}

// find determines the route.
func (c *call) find() error {
	c.route = findRoute(c.r)
	c.api = c.route.api
	c.entry.API = c.api.codec().Format()
	if c.route.missing {
		return &protocol.Refusal{Status: http.StatusNotFound, Type: c.route.missingType(), Message: c.route.missingText(c.r)}
	}
	if method := c.route.method; c.r.Method != method && (method != http.MethodGet || c.r.Method != http.MethodHead) {
		return &protocol.Refusal{Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Message: "Method Not Allowed"}
	}
	return nil
}

// maxBody is the largest request that is read, in bytes, whatever a model's
// limit is.
const maxBody = 32 << 20

func (c *call) read() ([]byte, error) {
	var buf bytes.Buffer
	if n := c.r.ContentLength; n > 0 && n <= maxBody {
		buf.Grow(int(n) + bytes.MinRead)
	}
	in := io.Reader(c.r.Body)
	if c.r.Header.Get("Content-Encoding") == "zstd" { // Codex, signed in with ChatGPT
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		in = z
	}
	n, err := buf.ReadFrom(io.LimitReader(in, maxBody+1))
	c.entry.Bytes = int(n)
	if err != nil {
		return nil, &protocol.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "The request body could not be read: " + err.Error()}
	}
	if n > maxBody {
		return nil, &protocol.Refusal{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "Request exceeds the maximum size"}
	}
	if c.sim.opts.KeepBodies {
		c.entry.Body = buf.Bytes()
	}
	return buf.Bytes(), nil
}

// decode decodes the body and finds its model.
func (c *call) decode(body []byte) error {
	body, err := c.api.expand(c, body)
	if err != nil {
		return err
	}
	if c.req, err = c.api.codec().DecodeRequest(body); err != nil {
		return c.api.undecoded(err)
	}
	if c.route.model != "" {
		c.req.Model, c.req.Stream = c.route.model, c.route.stream
	}
	c.entry.Model, c.entry.Stream, c.entry.Messages = clipped(c.req.Model), c.req.Stream, len(c.req.Messages)
	model, ok := c.sim.opts.Models(c.req.Model)
	if c.req.Model == "" || !ok {
		return c.api.unknownModel(clipped(c.req.Model))
	}
	if c.sim.opts.Window > 0 {
		model.Window = c.sim.opts.Window
	}
	c.model = model
	c.salt = c.account()
	return nil
}

// clipped limits the length of the request's values in the journal.
func clipped(s string) string { return strings.ToValidUTF8(s[:min(len(s), 200)], "") }

var accountSeed = maphash.MakeSeed()

// account identifies the credentials; each account has its own prompt cache.
func (c *call) account() uint64 {
	var h maphash.Hash
	h.SetSeed(accountSeed)
	for _, s := range []string{c.r.Header.Get("Authorization"), c.r.Header.Get("X-Api-Key"), c.r.Header.Get("X-Goog-Api-Key"), c.r.URL.Query().Get("key"), c.req.Model} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	return h.Sum64()
}
