package sim

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
)

// Clients ask for the available models before they start. The list is that of
// the built-in catalogue, as far as Options.Models knows it.

func listModels(c *call) error {
	var list []byte
	first, last := "null", "null"
	for _, e := range catalog.Default().Entries() {
		m, ok := c.sim.opts.Models(e.Model.ID)
		if _, google := c.api.(gemini); !ok || google && m.Provider != "google" {
			continue
		}
		if len(list) > 0 {
			list = append(list, ',')
		} else {
			first = string(str(e.Model.ID))
		}
		last = string(str(e.Model.ID))
		list = append(list, c.modelShape(e.Model.ID, &m)...)
	}
	switch c.api.(type) {
	case gemini:
		return c.send(fmt.Appendf(nil, `{"models":[%s]}`, list))
	case messages:
		return c.send(fmt.Appendf(nil, `{"data":[%s],"has_more":false,"first_id":%s,"last_id":%s}`, list, first, last))
	}
	return c.send(fmt.Appendf(nil, `{"object":"list","data":[%s]}`, list))
}

func (c *call) oneModel(id string) error {
	m, ok := c.sim.opts.Models(id)
	if !ok {
		return c.api.unknownModel(clipped(id))
	}
	return c.send(c.modelShape(id, &m))
}

func (c *call) modelShape(id string, m *furl.Model) []byte {
	window := m.Window
	if c.sim.opts.Window > 0 {
		window = c.sim.opts.Window
	}
	switch c.api.(type) {
	case gemini:
		return geminiModelShape(id, window, m)
	case messages:
		return fmt.Appendf(nil, `{"type":"model","id":%s,"display_name":%s,"created_at":"2026-01-01T00:00:00Z","max_input_tokens":%d,"max_tokens":%d,"capabilities":null,"lifecycle":"active","line":null,"deprecated_at":null,"retires_at":null}`,
			str(id), str(id), window, m.MaxOutput)
	}
	return fmt.Appendf(nil, `{"id":%s,"object":"model","created":1767225600,"owned_by":%s}`, str(id), str(m.Provider))
}
