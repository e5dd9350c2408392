package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/recalltext"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// DefaultOperations are the operations that a model has if the user names no others. They
// hide nothing.
func DefaultOperations() []string { return []string{"pin", "unpin", "restore"} }

// OperationsFor returns the operations with the names. It returns an error if a model cannot
// have one of them.
func OperationsFor(names []string) ([]*operation.Operation, error) {
	list := []*operation.Operation{}
	for _, name := range names {
		o := operation.Named(name)
		if o == nil || !o.On(operation.Model) {
			var all []string
			for _, o := range operation.All() {
				if o.On(operation.Model) {
					all = append(all, o.Name)
				}
			}
			return nil, fmt.Errorf("unknown operation %q of a model: expected some of %s", name, strings.Join(all, ", "))
		}
		list = append(list, o)
	}
	return list, nil
}

// toolPrefix begins the name of a tool that is an operation.
const toolPrefix = "memory_"

// operationOf returns the operation that a tool is, nil if it is none.
func operationOf(tool string) *operation.Operation {
	name, ok := strings.CutPrefix(tool, toolPrefix)
	if !ok {
		return nil
	}
	return operation.Named(name)
}

type rangeInput struct {
	Handle string `json:"handle" jsonschema:"From a search result, such as furl:ID/12.0. Without ID: of the current session."`
	To     string `json:"to,omitempty" jsonschema:"The last message, for all from handle to this one."`
}

// addOperations adds the tools that change what a model sees in a session.
func (s *Server) addOperations() {
	no := false
	for _, o := range s.o.Operations {
		about, _, _ := strings.Cut(o.Long, ". ")
		add(s, &mcp.Tool{
			Name: toolPrefix + o.Name, Title: o.Short, Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
			Description: strings.Join(strings.Fields(strings.TrimSuffix(about, ".")), " ") + ". Has an effect on sessions that run through furl's gateway.",
		}, func(ctx context.Context, req *mcp.CallToolRequest, in rangeInput) ([]string, error) {
			return s.operate(ctx, req, o, &in)
		})
	}
}

// operate does an operation on the message of a handle, or on a range of messages.
func (s *Server) operate(ctx context.Context, req *mcp.CallToolRequest, o *operation.Operation, at *rangeInput) ([]string, error) {
	h, err := s.handle(ctx, req.Session, at.Handle)
	if err != nil {
		return nil, err
	}
	name := h.String()
	if at.To != "" {
		to, err := recall.ParseHandle(at.To)
		if err != nil || to.Session != "" && to.Session != h.Session {
			return nil, fmt.Errorf("invalid to %.80q: expected a handle of the same session", at.To)
		}
		name = fmt.Sprintf("%d-%d", h.Msg, to.Msg)
	}
	one, err := s.all.Open(ctx, h.Session)
	if err != nil {
		return nil, s.failure("opening the session", err)
	}
	in := o.Input()
	if err := operation.Arguments(in, []string{name}); err != nil {
		return nil, err
	}
	call := &operation.Call{Context: ctx, Sessions: s.all, Session: one, ByModel: true}
	if s.o.Compactor != nil {
		call.Compactor = s.o.Compactor(one)
	}
	done, err := o.Do(call, in)
	var refused operation.Refusal
	switch {
	case errors.As(err, new(*operation.UnknownBlock)):
		return nil, missing(furl.ErrNotOnPath, "unknown handle %.80q: the session has no such message; %s gives handles", h.String(), recalltext.ToolSearch)
	case errors.Is(err, furl.ErrNotOnPath):
		return nil, fmt.Errorf("%s is on another branch of the session: only messages of the current branch can be chosen", h)
	case errors.As(err, &refused), errors.As(err, new(operation.Invalid)), errors.As(err, new(*storage.HeldError)):
		return nil, err
	case err != nil:
		return nil, s.failure(o.Name, err)
	}
	return []string{strings.Join(append([]string{done.Text(false)}, done.Notes...), " ")}, nil
}
