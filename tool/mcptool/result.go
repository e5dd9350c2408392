package mcptool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/tool"
)

// toResult returns a result for the model.
func toResult(out *mcp.CallToolResult) tool.Result {
	r := tool.Result{Error: out.IsError}
	for _, content := range out.Content {
		r.Parts = append(r.Parts, part(content))
	}
	if out.StructuredContent != nil && strings.TrimSpace(r.Text()) == "" {
		if data, err := json.Marshal(out.StructuredContent); err == nil { // it was decoded from JSON
			r.Parts = append(r.Parts, tool.Part{Text: string(data)})
		}
	}
	return r
}

func part(content mcp.Content) tool.Part {
	switch content := content.(type) {
	case *mcp.TextContent:
		return tool.Part{Text: content.Text}
	case *mcp.ImageContent:
		return media(content.MIMEType, content.Data, "")
	case *mcp.AudioContent:
		return media(content.MIMEType, content.Data, "")
	case *mcp.EmbeddedResource:
		if content.Resource == nil {
			return tool.Part{Text: "[an empty resource]"}
		}
		r := content.Resource
		if len(r.Blob) > 0 {
			return media(r.MIMEType, r.Blob, r.URI)
		}
		return tool.Part{Text: "[resource " + r.URI + "]\n" + r.Text}
	case *mcp.ResourceLink:
		return tool.Part{Text: link(content)}
	default:
		return tool.Part{Text: fmt.Sprintf("[content of an unsupported type: %T]", content)}
	}
}

// mediaTypes are those that providers accept.
var mediaTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}

// media returns bytes as a part, or a text that describes them if no provider accepts
// them.
func media(kind string, data []byte, uri string) tool.Part {
	kind, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(kind)), ";")
	if slices.Contains(mediaTypes, kind) && len(data) > 0 {
		return tool.Part{Type: kind, Data: data}
	}
	what := kind
	if what == "" {
		what = "data of an unknown type"
	}
	if uri != "" {
		what = "resource " + uri + ": " + what
	}
	return tool.Part{Text: fmt.Sprintf("[%s, %d bytes; not shown, because this type is not supported]", what, len(data))}
}

func link(l *mcp.ResourceLink) string {
	text := "[link to resource " + l.URI
	if l.Name != "" {
		text += ", " + l.Name
	}
	if l.MIMEType != "" {
		text += ", " + l.MIMEType
	}
	if l.Size != nil {
		text += fmt.Sprintf(", %d bytes", *l.Size)
	}
	text += "]"
	if l.Description != "" {
		text += "\n" + l.Description
	}
	return text
}
