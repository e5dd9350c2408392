package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/transcript"
)

// client is an agent as furl sees it.
type client struct {
	name   string
	format furl.Format
	header []string
	fields map[string]any
}

const sessionID = "0f5d7a0e"

// agents are clients in each of the formats.
var agents = []client{
	{"claude", furl.FormatAnthropic, []string{"User-Agent", "claude-cli/2.0.0 (external, cli)"}, map[string]any{
		"max_tokens": 8000, "metadata": map[string]any{"user_id": "user_0a1b_account__session_" + sessionID}}},
	{"codex", furl.FormatResponses, []string{"Session-Id", sessionID, "Thread-Id", sessionID, "X-Codex-Turn-Metadata", `{"session_id":"` + sessionID + `","request_kind":"turn"}`},
		map[string]any{"prompt_cache_key": sessionID}},
	{"chat", furl.FormatChat, nil, nil},
}

// newClient returns a client of the simulator that sends through a stand.
func (c *client) newClient(st *stand, stream bool) *sim.Client {
	out := &sim.Client{
		URL: st.provider.URL, Format: c.format, Model: "claude-sonnet-4-5", Stream: stream, System: "You are an agent that works on code.",
		HTTP: &http.Client{Transport: st}, Header: http.Header{"Authorization": {"Bearer probe"}}, Fields: c.fields,
	}
	if c.format != furl.FormatAnthropic {
		out.Model = "gpt-5"
	}
	for i := 0; i+1 < len(c.header); i += 2 {
		out.Header.Set(c.header[i], c.header[i+1])
	}
	return out
}

// presets returns the names of all policies.
func presets() []string { return policy.NewSet().Names() }

// recordedCases are the recordings in the folders, for each preset and each format.
func recordedCases(o *options) (cases []probed, err error) {
	for _, folder := range o.folders {
		var files []string
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Dir(path) != filepath.Clean(folder) { // not its README
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		slices.Sort(files)
		for i, file := range files {
			name, err := filepath.Rel(folder, file)
			if err != nil {
				return nil, err
			}
			var rec *recording // shared by the cases of the file
			for j, preset := range presets() {
				for k := range agents {
					if o.quick && (i%8 != 0 || (i/8+j)%3 != k) {
						continue
					}
					c := &agents[k]
					cases = append(cases, probed{name: fmt.Sprintf("%s %s %s", filepath.ToSlash(name), c.name, preset), run: func(o *options, out *output) error {
						if rec == nil {
							rec = readRecording(file)
						}
						s := rec.session
						if j == len(presets())-1 && k == len(agents)-1 {
							rec = nil
						}
						if s == nil {
							return nil // not an agent's
						}
						return replay(o, out, s, c, preset, i+j+k)
					}})
				}
			}
		}
	}
	return cases, nil
}

// recording is a file's first session, nil if it has none.
type recording struct{ session *transcript.Session }

func readRecording(file string) *recording {
	rec, err := transcript.ReadFile(file)
	if err != nil || len(rec.Sessions) == 0 {
		return &recording{}
	}
	return &recording{rec.Sessions[0]}
}

// replay sends the requests of a recording. n varies what the cases do besides.
func replay(o *options, out *output, s *transcript.Session, c *client, preset string, n int) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(out.name))
	n += int(h.Sum32() % 60)
	st, err := newStand(o, out, &setup{
		policy: preset, window: 24_000, real: 10_000_000, player: sim.NewPlayback(s),
		recall: n%4 == 1, hour: n%5 == 2, dry: n%20 == 3, transport: n%6 == 4, sqlite: n%15 == 7,
	})
	if err != nil {
		return err
	}
	defer st.close()
	if n%3 == 0 {
		st.restartAt = o.most / 2
	}
	st.pause = func(request int) time.Duration {
		switch {
		case request%13 == 12:
			return 10 * time.Minute
		case request%29 == 28:
			return 70 * time.Minute
		}
		return 15 * time.Second
	}
	if err := c.newClient(st, n%2 == 0).Follow(context.Background(), s, o.most); err != nil {
		st.put("error", []byte(err.Error()))
	}
	return st.end()
}
