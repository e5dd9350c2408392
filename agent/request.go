package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/tool"
	"github.com/furlhq/furl/wire"
)

// request is a request that is ready to be sent.
type request struct {
	provider *provider
	fit      *session.Fit
	head     []byte // the body without the session's messages
	body     []byte
}

// maxOverflows is how often a prompt that the provider refuses as too long is
// shortened.
const maxOverflows = 3

// exchange sends a request and records the reply. A prompt that the provider refuses
// as too long is shortened and sent again. One whose thinking it refuses is sent again
// without thinking, once.
func (r *run) exchange(ctx context.Context) (*request, *protocol.Reply, error) {
	x, err := r.prepare(ctx, &refusedPrompt{})
	if err != nil {
		return nil, nil, err
	}
	r.noHourCache = false
	overflows, thinking := 0, false
	for {
		reply, err := r.sendAgain(ctx, x.provider, x.body, r.delta)
		switch {
		case err == nil:
			if r.noHourCache {
				r.inside().RecordHourCacheRefused(x.fit.Model)
			}
			return x, reply, r.observe(ctx, x, reply)
		case ctx.Err() != nil:
			return nil, nil, errors.Join(interruption(ctx), r.observePartial(ctx, x, reply))
		case reply.Refusal != nil && reply.ThinkingRefused != nil && !thinking:
			thinking = true
			again, failed := r.prepare(ctx, &refusedPrompt{thinking: reply.ThinkingRefused})
			if failed != nil {
				return nil, nil, failed
			}
			if bytes.Equal(again.body, x.body) {
				return nil, nil, err // there is none to leave out
			}
			x = again
			continue
		case reply.Refusal != nil && reply.Overflow == nil && reply.Refusal.Status == http.StatusBadRequest && x.fit.HourCache:
			r.noHourCache = true // it may be the reason
			if x, err = r.prepare(ctx, &refusedPrompt{}); err != nil {
				return nil, nil, err
			}
			continue
		case reply.Refusal == nil || reply.Overflow == nil || overflows == maxOverflows:
			return nil, nil, err
		}
		r.inside().RecordOverflow(x.fit.Model, reply.Overflow, x.fit.Plan.After)
		again, failed := r.prepare(ctx, &refusedPrompt{overflow: reply.Overflow})
		if failed != nil {
			return nil, nil, failed
		}
		if len(again.body) >= len(x.body) {
			return nil, nil, err // nothing is left to hide
		}
		x, overflows = again, overflows+1
	}
}

// refusedPrompt says why the provider has refused the prompt before this one; it is zero
// if it has not.
type refusedPrompt struct {
	overflow *protocol.Overflow
	thinking *protocol.ThinkingRefused
}

// prepare makes the context fit the model's window and builds the request.
func (r *run) prepare(ctx context.Context, was *refusedPrompt) (*request, error) {
	x, err := r.fit(ctx, was)
	if err != nil || !r.compacted {
		return x, err
	}
	// The cache is lost with the compaction, so this is the time for new instructions.
	r.compacted = false
	if r.o.RebuildSystem == nil {
		return x, nil
	}
	system, err := r.o.RebuildSystem(ctx)
	if err != nil {
		return nil, fmt.Errorf("rebuild the instructions: %w", err)
	}
	if system == r.system {
		return x, nil
	}
	r.system = system
	return r.fit(ctx, was)
}

func (r *run) fit(ctx context.Context, was *refusedPrompt) (*request, error) {
	r.mu.Lock()
	p := r.provider
	r.mu.Unlock()
	head, in, err := r.head(p)
	if err != nil {
		return nil, err
	}
	x := &request{provider: p, head: head}
	summaries := !r.o.Summaries.Off && !r.o.Playback
	z, err := r.newSummarizer(p, head)
	if err != nil {
		return nil, err
	}
	if in.Refused, in.ThinkingRefused = was.overflow, was.thinking; r.noHourCache {
		in.HourCache = protocol.HourNever
	}
	in.Adjust = func(set policy.Settings) policy.Settings {
		set.Off = set.Off || r.o.Playback
		if summaries {
			set.Summarizer, set.Ask = z, r.o.Summaries.Ask
		}
		if r.o.WorkingMemory != nil {
			set.WorkingMemory = r.o.WorkingMemory
		}
		return set
	}
	draft, err := r.inside().Prepare(ctx, transact.Preparation[*session.Fit]{
		AskModel: summaries,
		NoModel:  *was != refusedPrompt{}, // a request for a summary would be too long as well
		Prompt:   func(transact.Tx[*session.Fit]) transact.Prompt { return in },
		Encode: func(_ transact.Tx[*session.Fit], fit *session.Fit) error {
			list, err := p.api.EncodeView(fit.View)
			if err != nil {
				return err
			}
			x.fit = fit
			x.body, fit.Received = withList(p.api, head, list)
			if fit.HourCache {
				if body, ok := p.api.HourPreamble(x.body); ok {
					x.body = body
				} else {
					fit.HourCache = false
				}
			}
			fit.Sent = x.body
			return nil
		},
	})
	switch {
	case ctx.Err() != nil:
		return nil, interruption(ctx)
	case err == nil:
		err = draft.Commit(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare a request: %w", err)
	}
	return x, r.follow()
}

// head returns the request without the session's messages, and what counts of it.
func (r *run) head(p *provider) ([]byte, transact.Prompt, error) {
	m := r.s.Model(p.ID)
	params := p.params(r.system, r.allTools(), defaultMaxTokens(m.MaxOutput))
	params.CacheKey = string(r.s.ID())
	head, err := p.api.NewRequest(params)
	if err != nil {
		return nil, transact.Prompt{}, err
	}
	req, err := p.api.DecodeRequest(head)
	if err != nil {
		return nil, transact.Prompt{}, fmt.Errorf("request options: %w", err)
	}
	in := transact.Prompt{
		Model: p.ID, Preamble: req.Preamble, Digest: req.PreambleDigest,
		MaxTokens: req.MaxTokens, Cache: p.api.CacheRequest(req), Window: p.Window,
	}
	if len(req.Messages) > 0 { // the instructions are in the list
		in.Preamble = append([]furl.Block{{Kind: furl.KindText, Text: r.system}}, in.Preamble...)
		seal := furl.Message{Role: furl.RoleSystem, Blocks: []furl.Block{{Text: r.system}, {Text: req.PreambleDigest.String()}}}
		seal.Seal()
		in.Digest = seal.Digest
	}
	return head, in, nil
}

// defaultMaxTokens is the limit of the output for providers that require one.
func defaultMaxTokens(most int) int { return min(cmp.Or(most, 8192), 32_000) }

// params returns the parts of a request. required is the limit of the output if the
// provider requires one and none is set.
func (p *provider) params(system string, tools []tool.Tool, required int) *protocol.Params {
	params := &protocol.Params{Model: p.ID, System: system, MaxTokens: p.MaxTokens, Thinking: p.Thinking, Options: p.Options}
	if p.Format == furl.FormatAnthropic {
		params.MaxTokens = cmp.Or(params.MaxTokens, required)
	}
	for _, t := range tools {
		params.Tools = append(params.Tools, protocol.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return params
}

// withList adds messages to a request whose list is its last field. The decoded
// request has only what a record of the exchange needs.
func withList(api wire.API, head []byte, list []json.RawMessage) ([]byte, *protocol.Request) {
	size := len(head)
	for _, raw := range list {
		size += len(raw) + 1
	}
	body := append(make([]byte, 0, size), head[:len(head)-2]...) // without "]}"
	req := &protocol.Request{Format: api.Format()}
	if decoded, err := api.DecodeRequest(head); err == nil {
		for i, m := range decoded.Messages {
			req.Messages, req.Offsets = append(req.Messages, furl.Message{Raw: m.Raw}), append(req.Offsets, decoded.Offsets[i])
		}
	}
	for _, raw := range list {
		if body[len(body)-1] != '[' {
			body = append(body, ',')
		}
		req.Messages, req.Offsets = append(req.Messages, furl.Message{Raw: raw}), append(req.Offsets, len(body))
		body = append(body, raw...)
	}
	req.Body = append(body, "]}"...)
	return req.Body, req
}

// sendAgain sends a request, again after temporary failures. After an error, the reply
// has what was received.
func (r *run) sendAgain(ctx context.Context, p *provider, body []byte, notify func(protocol.Delta)) (*protocol.Reply, error) {
	for attempt := 1; ; attempt++ {
		reply, wait, err := r.send(ctx, p, body, notify)
		if err == nil || ctx.Err() != nil || wait < 0 || attempt > r.o.Retries {
			return reply, err
		}
		if wait == 0 {
			wait = backoff(attempt)
		}
		r.o.Logger.Warn("request failed, sent again", "session", r.s.ID(), "model", p.ID, "attempt", attempt, "wait", wait)
		r.emit(Retry{Attempt: attempt, Wait: wait, Err: err})
		if !sleep(ctx, wait) {
			return &protocol.Reply{Format: p.Format}, err
		}
	}
}

// send sends a request and reads the reply. After an error, wait is how long to wait
// before the request is sent again: 0 for a default, negative if it must not be sent
// again.
func (r *run) send(ctx context.Context, p *provider, body []byte, notify func(protocol.Delta)) (reply *protocol.Reply, wait time.Duration, err error) {
	none := &protocol.Reply{Format: p.Format}
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1"+p.api.Path(), bytes.NewReader(body))
	if err != nil {
		return none, -1, err
	}
	out.Header.Set("Content-Type", "application/json")
	out.Header.Set("Accept-Encoding", "identity")
	for name, value := range p.api.Headers(p.Key) {
		out.Header.Set(name, value)
	}
	maps.Copy(out.Header, p.Header)
	resp, err := p.client.RoundTrip(out)
	if err != nil {
		return none, 0, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	reader := wire.NewReplyReader(p.api, resp.StatusCode, resp.Header.Get("Content-Type"))
	reader.Notify(notify)
	_, cut := io.Copy(reader, resp.Body)
	reply, err = reader.Reply(cut)
	switch {
	case reply.Refusal != nil:
		wait := time.Duration(-1)
		if temporary(reply.Refusal.Status) {
			wait = retryAfter(resp.Header, time.Now())
		}
		return reply, wait, fmt.Errorf("model %s: status %d: %w", p.ID, reply.Refusal.Status, reply.Refusal)
	case err != nil:
		return reply, 0, fmt.Errorf("read the reply of %s: %w", p.ID, err)
	case !reply.Complete:
		return reply, 0, fmt.Errorf("read the reply of %s: %w", p.ID, cmp.Or(cut, io.ErrUnexpectedEOF))
	}
	if !reader.Stream() {
		notify(protocol.Delta{Text: textOf(reply)})
	}
	return reply, 0, nil
}

func (r *run) delta(d protocol.Delta) {
	switch {
	case d.Kind == furl.KindCall:
		r.emit(CallWriting{ID: d.ID, Name: d.Name})
	case d.Text == "":
	case d.Kind == furl.KindThinking:
		r.emit(ThinkingDelta{d.Text})
	default:
		r.emit(TextDelta{d.Text})
	}
}

// observe records a reply.
func (r *run) observe(ctx context.Context, x *request, reply *protocol.Reply) error {
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindCall && r.isRecall(b.Name) {
				b.Own = true // furl answers it
			}
		}
	}
	lasting, done := lasting(ctx)
	defer done()
	if err := r.s.Observe(lasting, x.fit, reply); err != nil {
		return fmt.Errorf("record the reply: %w", err)
	}
	r.usage = reply.Usage
	if err := r.follow(); err != nil {
		return err
	}
	r.emit(Replied{Model: cmp.Or(reply.Model, x.provider.ID), Usage: reply.Usage, Stop: reply.Stop, Text: textOf(reply), Account: x.fit.Account})
	return nil
}

// observePartial records the part of a reply that was received before an
// interruption, and results for its calls.
func (r *run) observePartial(ctx context.Context, x *request, reply *protocol.Reply) error {
	if len(reply.Messages) == 0 {
		return nil
	}
	if err := r.observe(ctx, x, reply); err != nil {
		return err
	}
	if err := r.runCalls(ctx, callsOf(reply), nil); ctx.Err() == nil {
		return err
	}
	return nil
}

func textOf(reply *protocol.Reply) string {
	var texts []string
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindText && b.Text != "" {
				texts = append(texts, b.Text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
