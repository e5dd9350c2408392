package conversation

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/tool"
	"github.com/furlhq/furl/tool/mcptool"
)

// mcpServers returns the MCP servers of a configuration with their variables replaced.
// An error names the variables that are not set.
func mcpServers(c *config.Config) ([]mcptool.Server, error) {
	var list []mcptool.Server
	for _, configured := range c.MCPServers {
		s, err := configured.Expanded()
		if err != nil {
			return nil, err
		}
		server := mcptool.Server{
			Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, URL: s.URL,
			StartTimeout: s.StartTimeout, CallTimeout: s.CallTimeout,
		}
		if len(s.Headers) > 0 {
			server.Header = make(http.Header)
			for name, value := range s.Headers {
				server.Header.Set(name, value)
			}
		}
		if err := server.Check(); err != nil {
			return nil, err
		}
		list = append(list, server)
	}
	return list, nil
}

// chatServers are the MCP servers of a chat. They start in the background, so that the
// chat opens at once; the first run waits for them.
type chatServers struct {
	cancel  context.CancelFunc
	started chan struct{} // closed when all servers have started or failed

	mu      sync.Mutex
	clients []*mcptool.Client // in the order of the configuration; nil if one failed
	notes   []string          // not shown yet
	said    map[string]bool
}

// startServers starts the servers. Close ends them.
func startServers(ctx context.Context, list []mcptool.Server) *chatServers {
	m := &chatServers{started: make(chan struct{}), clients: make([]*mcptool.Client, len(list)), said: make(map[string]bool)}
	ctx, m.cancel = context.WithCancel(ctx)
	var all sync.WaitGroup
	for i, s := range list {
		all.Go(func() {
			client, err := mcptool.Connect(ctx, s)
			m.mu.Lock()
			defer m.mu.Unlock()
			if err != nil {
				m.note(fmt.Sprintf("MCP server %s: %v", s.Name, err))
				return
			}
			m.clients[i] = client
		})
	}
	go func() {
		all.Wait()
		close(m.started)
	}()
	return m
}

// note keeps a text to be shown once.
func (m *chatServers) note(text string) {
	if !m.said[text] {
		m.said[text] = true
		m.notes = append(m.notes, text)
	}
}

// tools waits until the servers have started, and returns their tools and what to tell
// the user about them.
func (m *chatServers) tools(ctx context.Context) (list []tool.Tool, notes []string) {
	if m == nil {
		return nil, nil
	}
	select {
	case <-m.started:
	case <-ctx.Done():
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clients {
		if c == nil {
			continue
		}
		tools, err := c.Tools(ctx)
		if err != nil {
			m.note(fmt.Sprintf("MCP server %s: %v", c.Name(), err))
		}
		for _, n := range c.Notes() {
			m.note(fmt.Sprintf("MCP server %s: %s", c.Name(), n))
		}
		list = append(list, tools...)
	}
	notes, m.notes = m.notes, nil
	return list, notes
}

func (m *chatServers) close() {
	m.cancel()
	<-m.started
	for _, c := range m.clients {
		if c != nil {
			_ = c.Close() // always nil
		}
	}
}
