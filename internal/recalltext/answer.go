package recalltext

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// Tool is the definition of a recall tool.
type Tool struct{ Name, About, Schema string }

// tools are short because each prompt has them. Their bytes must never change, because
// that would invalidate prompt caches.
var tools = []Tool{
	{ToolSearch, "Search what this conversation no longer shows you: older messages and tool results that were shortened, summarized or left out to save context. Gives excerpts with handles.",
		`{"type":"object","properties":{"query":{"type":"string","description":"Words, names, paths or identifiers to look for."}},"required":["query"]}`},
	{ToolGet, "Get the exact original of something this conversation no longer shows you, by its handle, such as furl:12.0.",
		`{"type":"object","properties":{"handle":{"type":"string"},"from_line":{"type":"integer"},"to_line":{"type":"integer"}},"required":["handle"]}`},
}

// Offer returns the recall tools that a session's requests have: those listed, names
// separated by commas, or all of them if all is set. A tool is left out if the program
// has one of the same name.
func Offer(listed string, all bool, taken func(name string) bool) (list []Tool) {
	names := strings.Split(listed, ",")
	for _, t := range tools {
		if (all || slices.Contains(names, t.Name)) && !taken(t.Name) {
			list = append(list, t)
		}
	}
	return list
}

// Names returns the names of tools, separated by commas.
func Names(list []Tool) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	return strings.Join(names, ",")
}

// Limits of the calls that furl answers.
const (
	MaxRounds   = 4   // replies in a row that call recall tools and no others
	MaxCalls    = 8   // calls in one reply
	maxHits     = 5   // hits of a search
	maxExcerpt  = 400 // bytes of a hit
	maxNeighbor = 160 // bytes of the messages before and after a hit
)

// ErrTooMany is the error of calls above the limits.
var ErrTooMany = errors.New("too many calls of memory tools in this reply; answer without further calls")

// LastRound follows the results of the last round.
const LastRound = "\n\n[This was the last call of a memory tool allowed in this reply. Continue without further calls.]"

// Answer returns the result of a call of a recall tool in a session: what the model of
// this session no longer sees. An error is the text of a failed result. Failures of the
// store go to the log.
func Answer(ctx context.Context, s *session.Session, log *slog.Logger, name string, input json.RawMessage) (string, error) {
	var args struct {
		Query    string `json:"query"`
		Handle   string `json:"handle"`
		FromLine int    `json:"from_line"`
		ToLine   int    `json:"to_line"`
	}
	if err := json.Unmarshal(input, &args); err != nil {
		return "", errors.New("invalid arguments: they do not match the tool's schema")
	}
	if name == ToolGet {
		return original(s, args.Handle, recall.Range{FromLine: max(0, args.FromLine), ToLine: max(0, args.ToLine)})
	}
	if strings.TrimSpace(args.Query) == "" {
		return "", ErrEmptyQuery
	}
	return search(ctx, s, log, Truncate(args.Query, MaxQuery))
}

// search returns the result of a search for the model.
func search(ctx context.Context, s *session.Session, log *slog.Logger, query string) (string, error) {
	hits, err := s.Search(ctx, query, session.SearchOptions{Limit: maxHits, Excerpt: maxExcerpt, Context: maxNeighbor, WithoutRecall: true})
	if err != nil {
		log.Warn("search by a recall tool failed", "session", s.ID(), "error", err)
		return "", errors.New("the search failed; try again later")
	}
	if len(hits) == 0 {
		return "No hidden content matches. Try other words, such as names, paths or identifiers.", nil
	}
	var b strings.Builder
	if other := hits[0].Query; other != "" {
		fmt.Fprintf(&b, "Nothing matches the query; these are results for %q.\n", other)
	}
	fmt.Fprintf(&b, "Search results, best first. Use %s with a handle for the full text.\n", ToolGet)
	for i := range hits {
		h := &hits[i]
		fmt.Fprintf(&b, "\n[%s] %s\n%s\n", h.Handle, Block(h.Role, h.Kind, h.Tool, h.Time, h.Error), Truncate(h.Excerpt, 2*maxExcerpt))
		if h.Kind != furl.KindText.String() {
			continue // the messages beside calls and results say little about them
		}
		if n := h.Before; n != nil {
			fmt.Fprintf(&b, "before, [%s] %s: %s\n", n.Handle, n.Role, n.Text)
		}
		if n := h.After; n != nil {
			fmt.Fprintf(&b, "after, [%s] %s: %s\n", n.Handle, n.Role, n.Text)
		}
	}
	return b.String(), nil
}

// original returns the original of a handle for the model.
func original(s *session.Session, handle string, lines recall.Range) (string, error) {
	o, err := s.Get(handle)
	if err != nil {
		if _, bad := recall.ParseHandle(handle); bad != nil {
			return "", bad
		}
		return "", fmt.Errorf("unknown handle %.80q", handle)
	}
	head, piece, err := Original(o, lines)
	if err != nil {
		return "", err
	}
	return head + "\n\n" + piece, nil
}
