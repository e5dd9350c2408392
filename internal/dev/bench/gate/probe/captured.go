package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/wire"
)

// captured is one request that a client sent.
type captured struct {
	method, path string
	header       http.Header
	body         []byte
	req          *protocol.Request // nil: not for a model
}

var requestName = regexp.MustCompile(`(GET|HEAD|POST) (\S+)$`)

// readCaptured reads a file of requests. Each file in the txtar archive is a request whose name
// ends in METHOD PATH, with its header, an empty line and its body.
func readCaptured(name string) (list []captured, err error) {
	ar, err := txtar.ParseFile(name)
	if err != nil {
		return nil, err
	}
	for _, f := range ar.Files {
		m := requestName.FindStringSubmatch(f.Name)
		if m == nil {
			return nil, fmt.Errorf("%s: %q does not end in METHOD PATH", name, f.Name)
		}
		r := bufio.NewReader(bytes.NewReader(f.Data))
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, f.Name, err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		c := captured{method: m[1], path: m[2], header: http.Header(header), body: bytes.TrimSpace(body)}
		path, _, _ := strings.Cut(c.path, "?")
		for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
			if api := wire.For(format); strings.HasSuffix(path, strings.TrimPrefix(api.RequestPath("", false), "/v1")) {
				c.req, _ = api.DecodeRequest(c.body) // nil if it is not in the format
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// clientCases send the requests of real clients.
func clientCases(o *options) (cases []probed, err error) {
	var files []string
	for _, folder := range filepath.SplitList(o.captured) {
		found, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		list, err := readCaptured(file)
		if err != nil {
			return nil, err
		}
		for _, preset := range []string{"auto", "rolling-mask-5"} {
			name := fmt.Sprintf("requests of %s, %s", strings.TrimSuffix(filepath.Base(file), ".txtar"), preset)
			cases = append(cases, probed{name: name, run: func(o *options, out *output) error {
				st, err := newStand(o, out, &setup{policy: preset, window: 16_000, player: foretell(list), recall: preset == "auto"})
				if err != nil {
					return err
				}
				defer st.close()
				for i := range list {
					if err := st.send(&list[i]); err != nil {
						return err
					}
				}
				return st.end()
			}})
		}
	}
	return cases, nil
}

// foretell returns a player that answers each request with what follows it in a later one: what the
// client was told then.
func foretell(list []captured) sim.Player {
	replies := make(map[furl.Digest]sim.Reply)
	for i := range list {
		if list[i].req == nil {
			continue
		}
		msgs := list[i].req.Messages
		var chain furl.Digest
		for n := 0; n < len(msgs); n++ {
			if msgs[n].Role != furl.RoleAssistant {
				chain = msgs[n].Extend(chain)
				continue
			}
			before := chain
			var reply sim.Reply
			for ; n < len(msgs) && msgs[n].Role == furl.RoleAssistant; n++ {
				for _, b := range msgs[n].Blocks {
					if b.Kind == furl.KindText || b.Kind == furl.KindCall {
						reply.Blocks = append(reply.Blocks, furl.Block{Kind: b.Kind, Text: b.Text, ID: b.ID, Name: b.Name, Args: b.Args})
					}
				}
				chain = msgs[n].Extend(chain)
			}
			n--
			if _, known := replies[before]; !known && len(reply.Blocks) > 0 {
				replies[before] = reply
			}
		}
	}
	other := sim.NewAgent(&sim.AgentOptions{Seed: 5})
	return sim.PlayerFunc(func(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
		var chain furl.Digest
		for i := range req.Messages {
			chain = req.Messages[i].Extend(chain)
		}
		if r, ok := replies[chain]; ok {
			r.Blocks = slices.Clone(r.Blocks)
			return r, nil
		}
		return other.Play(ctx, req)
	})
}

// send sends a captured request.
func (st *stand) send(c *captured) error {
	req, err := http.NewRequest(c.method, st.provider.URL+c.path, bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	req.Header = c.header.Clone()
	resp, err := st.RoundTrip(req)
	if err != nil {
		return nil // noted
	}
	return resp.Body.Close()
}
