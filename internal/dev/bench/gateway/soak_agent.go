package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// soakAgent has one session. It is its client's transport, to see the headers
// and to ask for faults.
type soakAgent struct {
	*soak
	name    string
	rand    *rand.Rand
	client  *sim.Client
	session string
	sent    int
	fault   string // of the request under way
}

// faults are what goes wrong, in streams and in answers in one piece.
var (
	faults  = []string{"500", "503", "429 retry-after=1", "cut=1", "slow=50ms"}
	streams = []string{"500", "429 retry-after=1", "cut=2", "cut=5", "error=3", "split=bytes", "split=utf8", "split=lines", "ping", "args=odd", "slow=50ms"}
)

// oneIn of so many requests asks for a fault.
const oneIn = 8

// RoundTrip implements http.RoundTripper.
func (a *soakAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.fault != "" {
		r.Header.Set(sim.FaultHeader, a.fault)
	}
	resp, err := soakTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if id := resp.Header.Get("X-Furl-Session"); id != "" {
		// A first request whose answer was cut off may begin a session once more.
		if a.session != "" && id != a.session && len(a.client.History) > 1 {
			a.fail(fmt.Sprintf("%s: request %d is in session %s, those before in %s", a.name, a.sent, id, a.session))
		}
		a.session = id
	}
	return resp, nil
}

var soakTransport = &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: 2 * time.Second, DisableCompression: true}

// work goes on for as long as a session is to be, and compares it then.
func (a *soakAgent) work(ctx context.Context) error {
	if err := a.client.Say(fmt.Sprintf("I am %s. %s", a.name, prose(a.rand, 200))); err != nil {
		return err
	}
	// Of different lengths, so that they do not all end at once.
	length := a.length/4 + a.rand.IntN(a.length*3/4)
	for a.sent < length && a.more(ctx) {
		reply, err := a.send(ctx)
		if err != nil {
			return err
		}
		if err := a.answer(reply); err != nil {
			return err
		}
	}
	// What was added last is in no request yet.
	if _, err := a.send(ctx); err != nil {
		return err
	}
	return a.compare(ctx)
}

// send sends the history until there is an answer. What fails without having
// been asked to is a failure.
func (a *soakAgent) send(ctx context.Context) (*protocol.Reply, error) {
	for try := 0; ; try++ {
		a.fault = ""
		if try == 0 && a.rand.IntN(oneIn) == 0 {
			list := faults
			if a.client.Stream {
				list = streams
			}
			a.fault = list[a.rand.IntN(len(list))]
			a.mu.Lock()
			a.injected[a.fault]++
			a.mu.Unlock()
		}
		a.soak.sent.Add(1)
		a.sent++
		began := time.Now()
		reply, err := a.client.Send(ctx)
		if err == nil {
			a.mu.Lock()
			a.took = append(a.took, time.Since(began))
			a.mu.Unlock()
			return reply, nil
		}
		if ctx.Err() != nil || a.fault == "" {
			return nil, err
		}
	}
}

// answer gives what the tools gave, or says the next thing.
func (a *soakAgent) answer(reply *protocol.Reply) error {
	var results []furl.Block
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindCall {
				results = append(results, furl.Block{Kind: furl.KindResult, ID: b.ID, Text: lines(a.rand, 200+a.rand.IntN(2500))})
			}
		}
	}
	if len(results) == 0 {
		return a.client.Say(prose(a.rand, 100))
	}
	return a.client.Results(results)
}

// codecOf decodes histories.
var codecOf = map[furl.Format]protocol.Codec{
	furl.FormatAnthropic: anthropic.Codec, furl.FormatChat: openai.Chat, furl.FormatResponses: openai.Responses,
}

// compare holds the client's history against the log.
func (a *soakAgent) compare(ctx context.Context) error {
	// The last answer is recorded a moment after its end; furl's API waits
	// for that, the store does not know.
	if _, err := scrape(a.p.url); err != nil {
		return err
	}
	store, err := sqlite.Open(a.p.store(), &sqlite.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer store.Close()
	sessions, err := session.New(store, nil)
	if err != nil {
		return err
	}
	s, err := sessions.Open(ctx, furl.SessionID(a.session))
	if err != nil {
		return err
	}
	a.done.Add(1)
	var chain furl.Digest
	texts := make(map[string]string) // results by call
	for _, raw := range a.client.History {
		m, err := codecOf[a.client.Format].DecodeMessage(raw)
		if err != nil {
			return err
		}
		chain = m.Extend(chain)
		for _, b := range m.Blocks {
			if b.Kind == furl.KindResult {
				texts[b.ID] = b.Text
			}
		}
	}
	log := furl.NewLog()
	if err := log.Load(s.Records(0)); err != nil {
		return err
	}
	st := log.State()
	system := 0 // instructions that Chat Completions has in the list
	for system < st.Len() && role(st, system) == furl.RoleSystem {
		system++
	}
	var logged furl.Digest
	found := 0
	for i := system; i < st.Len(); i++ {
		_, m := st.Message(i)
		logged = m.Extend(logged)
		for _, b := range m.Blocks {
			if b.Kind != furl.KindResult {
				continue
			}
			if found++; texts[b.ID] != b.Text {
				return fmt.Errorf("%w: session %s, the result of %s", errDrift, a.session, b.ID)
			}
		}
	}
	if logged != chain || found != len(texts) {
		return fmt.Errorf("%w: session %s, %d elements and %d messages, %d and %d results", errDrift, a.session, len(a.client.History), st.Len(), len(texts), found)
	}
	return nil
}

func role(st *furl.State, i int) furl.Role {
	_, m := st.Message(i)
	return m.Role
}
