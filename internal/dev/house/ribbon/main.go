// Command ribbon writes docs/use/ribbon.svg, the animated picture of the ribbon: a recorded
// session is run again under a policy of furl, and the picture shows the prompt of each
// request to scale.
//
//	ribbon [-policy NAME] [-window TOKENS] RECORDING
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

func main() {
	policy := flag.String("policy", "auto", "policy")
	window := flag.Int("window", 200_000, "context window in tokens")
	out := flag.String("o", "docs/use/ribbon.svg", "file to write")
	flag.Parse()
	if err := run(flag.Arg(0), *policy, *window, *out); err != nil {
		fmt.Fprintln(os.Stderr, "ribbon:", err)
		os.Exit(1)
	}
}

func run(file, policy string, window int, out string) error {
	if file == "" {
		return errors.New("usage: ribbon [-policy NAME] [-window TOKENS] RECORDING")
	}
	rec, err := transcript.ReadFile(file)
	if err != nil {
		return err
	}
	if len(rec.Sessions) == 0 {
		return fmt.Errorf("%s has no session", file)
	}
	now := time.Time{}
	all, err := session.New(inmem.New(), &session.Options{Policy: policy, Window: window, Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	src := rec.Sessions[0]
	s := all.Create(storage.Meta{Model: src.Model})
	if err := again(s, src.Log.State(), src.Model, func(at time.Time) { now = at }); err != nil {
		return fmt.Errorf("run %s again: %w", file, err)
	}
	m, err := readMovie(all, s.ID())
	if err != nil {
		return err
	}
	colors, err := readColors("internal/look/look.css")
	if err != nil {
		return err
	}
	text := m.svg(colors)
	fmt.Printf("%s: %d requests, %d reductions, %d bytes\n", out, len(m.frames), len(m.curve.Reductions), len(text))
	return os.WriteFile(out, []byte(text), 0o644)
}

// preamble is the assumed size of instructions and tools, which recordings lack, and
// perToken the provider's tokens for each counted one.
const (
	preamble = 18_000
	perToken = 1.1
)

// again makes the requests of a recorded path in a session, with the recorded replies. Each
// prompt is reported to be read from the cache as far as the previous one reached.
func again(s *session.Session, st *furl.State, model string, tick func(time.Time)) error {
	ctx := context.Background()
	cached := 0
	for i := 0; i < st.Len(); {
		_, msg := st.Message(i)
		tick(st.Time(i))
		if msg.Role != furl.RoleAssistant {
			if _, err := s.Append(ctx, msg); err != nil {
				return err
			}
			i++
			continue
		}
		fit, err := s.Fit(ctx, model)
		if err != nil {
			return err
		}
		size := preamble + int(perToken*float64(fit.View.Tokens))
		if size < cached {
			cached = preamble // a reduction has changed the prompt
		}
		reply := &protocol.Reply{ID: fmt.Sprint("reply", i), Usage: furl.Usage{CacheRead: cached, CacheWrite: size - cached}}
		for ; i < st.Len(); i++ {
			_, msg := st.Message(i)
			if msg.Role != furl.RoleAssistant {
				break
			}
			reply.Messages = append(reply.Messages, msg)
			for j := range msg.Blocks {
				reply.Usage.Output += msg.Blocks[j].Tokens
			}
		}
		if err := s.Observe(ctx, fit, reply); err != nil {
			return err
		}
		cached = size
	}
	return nil
}

// frame is the picture of a request, as the page sends it to its ribbon.
type frame struct {
	Size, Window, Trigger int
	Kinds                 []string
	Kind, Tokens, Hidden  []int
}

// movie is what the picture shows.
type movie struct {
	frames []frame
	curve  struct {
		Size, Without, Window, Trigger []int
		Reductions                     []struct {
			Request int
			Line    string
		}
	}
}

// readMovie gets the pictures of all requests from the page.
func readMovie(all *session.Sessions, id furl.SessionID) (*movie, error) {
	page := web.New(nil)
	get := func(path string, v any) error {
		w := httptest.NewRecorder()
		page.ServePage(w, httptest.NewRequest(http.MethodGet, "/furl/sessions/"+string(id)+path, nil), gateway.Visit{Sessions: all})
		if w.Code != http.StatusOK {
			return fmt.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
		return json.Unmarshal(w.Body.Bytes(), v)
	}
	m := new(movie)
	if err := get("/requests", &m.curve); err != nil {
		return nil, err
	}
	if len(m.curve.Size) < 2 {
		return nil, errors.New("the session has fewer than two requests")
	}
	m.frames = make([]frame, len(m.curve.Size))
	for i := range m.frames {
		if err := get(fmt.Sprintf("/picture?request=%d", i+1), &m.frames[i]); err != nil {
			return nil, err
		}
	}
	return m, nil
}
