package clienttest

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// rememberer is a model that before every fifth step searches for what it has
// seen four steps ago. Its client must not see anything of that.
type rememberer struct {
	sim.Player
	asked atomic.Int64
}

func (r *rememberer) Play(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
	reply, err := r.Player.Play(ctx, req)
	if err != nil || !offersRecall(req) || remembered(req) {
		return reply, err
	}
	for i := range reply.Blocks {
		m := callStep.FindStringSubmatch(reply.Blocks[i].ID)
		if m == nil || reply.Blocks[i].Kind != furl.KindCall {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil && n%5 == 2 {
			r.asked.Add(1)
			return sim.Reply{Blocks: []furl.Block{
				{Kind: furl.KindText, Text: "Let me remember."},
				{Kind: furl.KindCall, Name: exchange.ToolSearch, Args: mustJSON(map[string]string{"query": marker(max(1, n-4))})},
			}}, nil
		}
	}
	return reply, nil
}

func offersRecall(req *protocol.Request) bool {
	for i := range req.Preamble {
		if b := &req.Preamble[i]; b.Kind == furl.KindOpaque && b.ID == exchange.ToolSearch {
			return true
		}
	}
	return false
}

// remembered reports whether the model has just searched.
func remembered(req *protocol.Request) bool {
	for i := max(0, len(req.Messages)-6); i < len(req.Messages); i++ {
		for j := range req.Messages[i].Blocks {
			if strings.HasPrefix(req.Messages[i].Blocks[j].Name, "memory_") {
				return true
			}
		}
	}
	return false
}
