package chatcmd_test

import (
	"fmt"
	"html"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// agentOf is an agent that works through a gateway, with what it has recorded.
type agentOf struct {
	client   sim.Client
	provider string
}

// work says something through a gateway on a store, and lets the agent work. It returns the
// session and its newest request.
func (a *agentOf) work(t *testing.T, place, words string) (id furl.SessionID, list []session.Request) {
	t.Helper()
	withSessionsOf(t, place, &session.Options{Policy: "none"}, func(all *session.Sessions) {
		up, err := upstream.New(a.provider, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer up.Close()
		g, err := gateway.New(all, gateway.Upstreams{Anthropic: up, OpenAI: up}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		front := httptest.NewServer(g)
		defer front.Close()
		a.client.URL = front.URL
		if err := a.client.Say(words); err != nil {
			t.Fatal(err)
		}
		if _, err = a.client.Work(t.Context(), func(call furl.Block) string {
			return strings.Repeat(fmt.Sprintf("Line of %s with some words in it.\n", call.ID), 120)
		}); err != nil {
			t.Fatal(err)
		}
		g.Wait(t.Context())
		for info, err := range all.List(t.Context(), storage.SessionQuery{Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			s, err := all.Open(t.Context(), info.Session)
			if err != nil {
				t.Fatal(err)
			}
			id = info.Session
			if list, err = s.Requests(); err != nil {
				t.Fatal(err)
			}
		}
	})
	return id, list
}

// saidSizes finds the sizes before and after in what is said of an operation.
var saidSizes = regexp.MustCompile(`([\d,]{4,}) → ([\d,]{4,}) tokens|"context_size_before":(\d+),"context_size_after":(\d+)`)

// previewOn returns what a surface says before an operation is done.
func previewOn(t *testing.T, on operation.Surface, o *operation.Operation, c operatedCase, place string) (said string) {
	switch on {
	case operation.Command:
		c.line += " --dry-run"
		said, err := operateOn(t, on, o, &c, place)
		if err != nil {
			t.Error(err)
		}
		return said
	case operation.Page:
		withSessions(t, place, func(all *session.Sessions) {
			_, said = requestOperation(t, all, on, o, &c, &gateway.Options{}, func(r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				r.Method, r.Body, r.URL.RawQuery = http.MethodGet, http.NoBody, string(body)
				r.ContentLength = 0
			})
		})
	}
	return said
}

// The sizes that are said before and after a reduction, on all surfaces, are those of the next
// request as it is then sent. The sizes are estimated, so they may differ by 1% of the prompt.
func TestSaidSizes(t *testing.T) {
	folder := t.TempDir()
	provideSummaries(t)
	provider := httptest.NewServer(sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 12})}))
	defer provider.Close()
	agent := &agentOf{provider: provider.URL, client: sim.Client{Model: "claude-sonnet-4-5", Format: furl.FormatAnthropic, System: strings.Repeat("Be careful with each file. ", 300)}}
	prepared := filepath.Join(folder, "prepared.db")
	id, requests := agent.work(t, prepared, "Look at the files.")
	withSessions(t, prepared, func(all *session.Sessions) {
		s, err := all.Open(t.Context(), id)
		if err == nil {
			err = s.Set(t.Context(), "policy", "none")
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	next := func(place string) int {
		a := *agent
		a.client.History = slices.Clip(a.client.History)
		_, later := a.work(t, place, "Go on.")
		return later[len(requests)].Size
	}
	whole := filepath.Join(folder, "whole.db")
	copyTo(t, prepared, whole)
	without := next(whole)
	for name, c := range map[string]operatedCase{
		"hide":    {"10.0", `{"handles":["10.0"]}`, []string{"hide", "at", "10.0"}, "10.0", false, string(id)},
		"compact": {"5-12", `{"handles":["5-12"]}`, []string{"compact", "at", "5-12"}, "5-12", false, string(id)},
		"reduce":  {"--policy rolling-mask-5", `{"policy":"rolling-mask-5"}`, []string{"reduce", "policy", "rolling-mask-5"}, "", false, string(id)},
	} {
		o, sent := operation.Named(name), 0
		for _, on := range operation.Surfaces() {
			if !o.On(on) {
				continue
			}
			place := filepath.Join(folder, name+string(on)+".db")
			copyTo(t, prepared, place)
			said := ""
			if name != "compact" { // how long the summary gets is not known before
				said = previewOn(t, on, o, c, place)
			}
			done, err := operateOn(t, on, o, &c, place)
			if err != nil {
				t.Errorf("%s on %s: %v", name, on, err)
			}
			if sent == 0 {
				sent = next(place)
			} else if again := next(place); again != sent {
				t.Errorf("%s on %s: the next request has %d tokens, after others %d", name, on, again, sent)
			}
			found := saidSizes.FindAllStringSubmatch(html.UnescapeString(said)+done, -1)
			if len(found) == 0 && (on == operation.Command || on == operation.API) {
				t.Errorf("%s on %s tells no sizes", name, on)
			}
			for _, sizes := range found {
				for i, want := range []int{without, sent} {
					got, err := strconv.Atoi(strings.ReplaceAll(sizes[1+i]+sizes[3+i], ",", ""))
					if off := math.Abs(float64(got - want)); err != nil || off > 0.01*float64(without) {
						t.Errorf("%s on %s says %q: the next request has %d tokens, without it %d", name, on, sizes[0], sent, without)
					}
				}
			}
		}
	}
}
