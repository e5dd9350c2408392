package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/tool"
)

// request is the next request of the session.
type request struct {
	*exchange.Exchange
	provider *provider
	head     []byte // the body without the session's messages
	failed   error  // of the events or the instructions after a plan was stored
}

// exchange sends a request and records the reply.
func (r *run) exchange(ctx context.Context) (*request, *protocol.Reply, error) {
	x, err := r.compose(ctx, r.rebuildSystem)
	if err != nil {
		return nil, nil, err
	}
	reply, err := x.Ask(ctx, r.askOptions(x.provider, r.delta))
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, nil, errors.Join(interruption(ctx), r.observePartial(ctx, x, reply))
	case x.failed != nil:
		return nil, nil, x.failed
	case err != nil:
		return nil, nil, err
	}
	return x, reply, r.observe(ctx, x, reply)
}

// compose makes the context fit the model's window and returns the request. stored is
// called after the events of a stored plan, see exchange.Composed.
func (r *run) compose(ctx context.Context, stored func(context.Context) (changed bool, err error)) (*request, error) {
	r.mu.Lock()
	x := &request{provider: r.provider}
	r.mu.Unlock()
	var err error
	x.Exchange, err = exchange.Compose(ctx, r.s, exchange.Composed{
		API:      x.provider.api,
		AskModel: r.summarizes(),
		Head: func() (head []byte, in open.Prompt, err error) {
			if x.head, in, err = r.head(x.provider); err == nil {
				in.Adjust, err = r.adjust(x)
			}
			return x.head, in, err
		},
		Stored: func(ctx context.Context) (changed bool, err error) {
			if err = r.follow(); err == nil {
				changed, err = stored(ctx)
			}
			x.failed = err
			return changed, err
		},
	})
	if err != nil && ctx.Err() != nil {
		return nil, interruption(ctx)
	}
	return x, err
}

// rebuildSystem rebuilds the instructions after a compaction: the cache is lost with it,
// so this is the time for new ones. It reports whether they have changed.
func (r *run) rebuildSystem(ctx context.Context) (changed bool, err error) {
	was := r.compacted
	r.compacted = false
	if !was || r.o.RebuildSystem == nil {
		return false, nil
	}
	system, err := r.o.RebuildSystem(ctx)
	if err != nil {
		return false, fmt.Errorf("rebuild the instructions: %w", err)
	}
	changed = system != r.system
	r.system = system
	return changed, nil
}

// summarizes reports whether a model is asked for the summaries of the session's policy.
func (r *run) summarizes() bool { return !r.o.Summaries.Off && !r.o.Playback }

// adjust returns the agent's changes of the session's settings for a request.
func (r *run) adjust(x *request) (func(policy.Settings) policy.Settings, error) {
	z, err := r.newSummarizer(x.provider, x.head)
	if err != nil {
		return nil, err
	}
	return func(set policy.Settings) policy.Settings {
		set.Off = set.Off || r.o.Playback
		if r.summarizes() {
			set.Summarizer, set.Ask = z, r.o.Summaries.Ask
		}
		if r.o.WorkingMemory != nil {
			set.WorkingMemory = r.o.WorkingMemory
		}
		return set
	}, nil
}

// head returns the request without the session's messages, and what counts of it.
func (r *run) head(p *provider) ([]byte, open.Prompt, error) {
	m := r.s.Model(p.ID)
	params := p.params(r.system, r.allTools(), defaultMaxTokens(m.MaxOutput))
	params.CacheKey = string(r.s.ID())
	head, err := p.api.NewRequest(params)
	if err != nil {
		return nil, open.Prompt{}, err
	}
	req, err := p.api.DecodeRequest(head)
	if err != nil {
		return nil, open.Prompt{}, fmt.Errorf("request options: %w", err)
	}
	in := open.Prompt{
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

// askOptions say how a request is sent to a provider.
func (r *run) askOptions(p *provider, notify func(protocol.Delta)) exchange.AskOptions {
	return exchange.AskOptions{
		Post: p.post, Notify: notify, Retries: r.o.Retries,
		Retry: func(attempt int, wait time.Duration, err error) {
			r.o.Logger.Warn("request failed, sent again", "session", r.s.ID(), "model", p.ID, "attempt", attempt, "wait", wait)
			r.emit(Retry{Attempt: attempt, Wait: wait, Err: err})
		},
	}
}

// post sends the body of a request.
func (p *provider) post(ctx context.Context, body []byte) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, p.api.RequestPath(p.ID, true), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header.Set("Content-Type", "application/json")
	out.Header.Set("Accept-Encoding", "identity")
	for name, value := range p.api.Headers(p.Key) {
		out.Header.Set(name, value)
	}
	maps.Copy(out.Header, p.Header)
	return p.client.RoundTrip(out)
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
	if err := x.Done(ctx, reply); err != nil {
		return err
	}
	r.usage = reply.Usage
	if err := r.follow(); err != nil {
		return err
	}
	r.emit(Replied{Model: cmp.Or(reply.Model, x.provider.ID), Usage: reply.Usage, Stop: reply.Stop, Text: exchange.TextOf(reply), Account: x.Fit.Account})
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
