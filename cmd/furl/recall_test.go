package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// rememberer is an agent that sometimes calls recall tools, if they are offered: after a
// text, without one, and together with a call of its client's tools.
type rememberer struct{ sim.Player }

func (p *rememberer) Play(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
	reply, err := p.Player.Play(ctx, req)
	offered := false
	for i := range req.Preamble {
		offered = offered || isRecall(req.Preamble[i].ID)
	}
	if err != nil || !offered || len(recallsOf(req)) > 0 {
		return reply, err
	}
	for i := range reply.Blocks {
		b := &reply.Blocks[i]
		step, rest, ok := stepOf(b.ID)
		if b.Kind != furl.KindCall || !ok {
			continue
		}
		// As for all calls, the id has the position of the agent.
		get := furl.Block{Kind: furl.KindCall, ID: strings.TrimSuffix(b.ID, rest) + "9", Name: exchange.ToolGet, Args: []byte(`{"handle":"furl:1.0"}`)}
		switch step % 7 {
		case 1:
			words := furl.Block{Kind: furl.KindText, Text: fmt.Sprintf("What was before step %d?", step)}
			get.Name, get.Args = exchange.ToolSearch, []byte(`{"query":"prints a line"}`)
			reply.Blocks = []furl.Block{words, get}
		case 3:
			reply.Blocks = append(reply.Blocks, get)
		case 5:
			reply.Blocks = []furl.Block{get}
		}
		break
	}
	return reply, nil
}

// stepOf parses the id of a call of the simulated agent: its step, and its position in
// the step.
func stepOf(id string) (step int, last string, ok bool) {
	_, at, ok := strings.Cut(id, "sim_")
	parts := strings.Split(at, "_")
	if !ok || len(parts) != 4 {
		return 0, "", false
	}
	step, err := strconv.Atoi(parts[1])
	return step, parts[3], err == nil
}

func isRecall(name string) bool { return name == exchange.ToolSearch || name == exchange.ToolGet }

// recallsOf returns the recall calls in the last reply, and its other calls.
func recallsOf(req *protocol.Request) (own []*furl.Block) {
	own, _ = lastCalls(req)
	return own
}

func lastCalls(req *protocol.Request) (own, others []*furl.Block) {
	said := false
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := &req.Messages[i]
		if m.Role != furl.RoleAssistant {
			if said {
				break
			}
			continue
		}
		said = true
		for j := range m.Blocks {
			switch b := &m.Blocks[j]; {
			case b.Kind != furl.KindCall:
			case isRecall(b.Name):
				own = append(own, b)
			default:
				others = append(others, b)
			}
		}
	}
	return own, others
}

// afterRecall reports whether a request continues after a call that furl answered.
func behindRecall(path string, body []byte) bool {
	format := furl.FormatAnthropic
	switch {
	case strings.HasSuffix(path, "/completions"):
		format = furl.FormatChat
	case strings.HasSuffix(path, "/responses"):
		format = furl.FormatResponses
	}
	req, err := codecOf(format).DecodeRequest(body)
	if err != nil {
		return false
	}
	own, others := lastCalls(req)
	return len(own) > 0 && len(others) == 0
}
