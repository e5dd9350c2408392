package demo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
)

// agent works on a project and records what it does. The first error stays
// and ends the session.
type agent struct {
	project  *project
	rng      *rand.Rand
	log      *furl.Log
	now      time.Time
	preamble *furl.Request
	err      error

	// read is what the newest read of each file showed, without numbers, and
	// what the agent itself wrote there since.
	read    map[string]string
	changes []change // since the last commit

	messages, calls, replies int
}

// act is one tool call with its result.
type act struct {
	tool   string
	args   string
	result string
	failed bool
	took   time.Duration
}

func newAgent(seed uint64, p *project) *agent {
	a := &agent{
		project: p,
		rng:     rand.New(rand.NewPCG(seed, 2)),
		log:     furl.NewLog(),
		now:     begun,
		read:    make(map[string]string),
	}
	a.preamble, a.err = anthropic.Codec.DecodeRequest([]byte(
		`{"model":"` + Model + `","system":` + quote(system) + `,"tools":` + tools + `,"messages":[]}`))
	return a
}

// user says something after a pause.
func (a *agent) user(pause time.Duration, text string) {
	a.now = a.now.Add(pause)
	a.message(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: text})
}

// do makes one reply with a few words and calls, and gets the results.
func (a *agent) do(say string, acts ...act) {
	var blocks, results []furl.Block
	if say != "" {
		blocks = append(blocks, furl.Block{Kind: furl.KindText, Text: say})
	}
	written := len(say)
	var took time.Duration
	for _, c := range acts {
		id := fmt.Sprintf("toolu_%022x", a.rng.Uint64())
		blocks = append(blocks, furl.Block{Kind: furl.KindCall, ID: id, Name: c.tool, Args: json.RawMessage(c.args)})
		results = append(results, furl.Block{Kind: furl.KindResult, ID: id, Text: c.result, Error: c.failed})
		written += len(c.args)
		took = max(took, c.took)
	}
	a.exchange(written, len(acts) > 0)
	a.message(furl.RoleAssistant, blocks...)
	if len(acts) > 0 {
		a.calls += len(acts)
		a.now = a.now.Add(took)
		a.message(furl.RoleUser, results...)
	}
}

// exchange records the request and lets the time pass that the reply takes:
// a few seconds, and more the more is written.
func (a *agent) exchange(written int, calls bool) {
	a.replies++
	stop := "end_turn"
	if calls {
		stop = "tool_use"
	}
	a.append(&furl.Exchange{
		Model:      Model,
		Preamble:   a.preamble.PreambleDigest,
		ResponseID: fmt.Sprintf("msg_%022x", a.rng.Uint64()),
		Stop:       stop,
	})
	a.now = a.now.Add(time.Duration(3000+a.rng.IntN(5000)+4*written) * time.Millisecond)
}

func (a *agent) message(role furl.Role, blocks ...furl.Block) {
	if a.err != nil {
		return
	}
	m, err := anthropic.Codec.NewMessage(role, blocks)
	if err != nil {
		a.err = err
		return
	}
	a.messages++
	a.append(m)
}

func (a *agent) append(body furl.Body) {
	if a.err == nil {
		_, a.err = a.log.Append(a.log.Head(), a.now, furl.Import, body)
	}
}

// fail ends the session: the script does not fit the project.
func (a *agent) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
}

// pick returns one of several ways to say something.
func (a *agent) pick(ways ...string) string { return ways[a.rng.IntN(len(ways))] }

// between returns a duration of so many seconds.
func (a *agent) between(from, to int) time.Duration {
	return time.Duration(1000*from+a.rng.IntN(1000*(to-from))) * time.Millisecond
}

// quote writes a JSON string as agents do, without escapes for HTML.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // strings always marshal
	}
	return strings.TrimSuffix(b.String(), "\n")
}
