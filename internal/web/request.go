package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/unidiff"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// requestPage is the data of the page of one request.
type requestPage struct {
	ID       furl.SessionID
	Title    string
	N, Of    int
	Request  *session.Request
	Exchange *furl.Exchange // nil if the recording has none
	Against  string         // "received" or "previous"
	// Sent and Received are the bodies, nil if they are not recorded; Why says why.
	Sent, Received *body
	Why            string
	Same           bool // nothing differs
	Diff           template.HTML
}

// body is the body of a request.
type body struct {
	Bytes  int
	Digest string // SHA-256 in hex
	text   []byte
}

func newBody(b []byte, err error) (*body, error) {
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return &body{len(b), hex.EncodeToString(sum[:]), b}, nil
}

// request returns the request that the path names.
func (v *visit) request(m *moment) (*session.Request, error) {
	n, err := strconv.Atoi(v.r.PathValue("n"))
	if err != nil || n < 1 || n > len(m.requests) {
		return nil, notFound("the session has no request %.20q: it has %d", v.r.PathValue("n"), len(m.requests))
	}
	return &m.requests[n-1], nil
}

// showRequest shows one request: what was sent, and how that differs from what the client
// sent or from the previous request.
func (p *Page) showRequest(v *visit) error {
	data := &requestPage{ID: v.s.ID(), Title: v.listed(v.s.Info()).Title, Against: "previous"}
	if v.r.FormValue("against") == "received" {
		data.Against = "received"
	}
	var previous furl.Seq
	var texts [2][]string // of the views, for requests without bodies
	err := v.readRequests(func(snap *snapshot) error {
		m, err := v.moment(snap)
		if err != nil {
			return err
		}
		r, err := v.request(m)
		if err != nil {
			return err
		}
		data.N, data.Of, data.Request = r.Number, len(m.requests), r
		if r.Exchange != 0 {
			data.Exchange = snap.log.At(r.Exchange).Body.(*furl.Exchange)
		}
		var before *session.Request
		if r.Number > 1 {
			before = &m.requests[r.Number-2]
			previous = before.Exchange
		}
		if data.Exchange != nil && data.Exchange.Request.Received != "" {
			return nil
		}
		data.Why = "The bodies of this request are not recorded, because the session was imported or its store keeps no bodies. The comparison shows what the model saw, as text."
		if texts[1], err = m.viewLines(r.Sent, v.s.Model(r.Model)); err != nil || before == nil {
			return err
		}
		texts[0], err = m.viewLines(before.Sent, v.s.Model(before.Model))
		return err
	})
	if err != nil {
		return err
	}
	if data.Why == "" {
		if texts, err = v.bodies(data, previous); err != nil {
			return err
		}
	}
	if bytes := sizeOf(texts[0]) + sizeOf(texts[1]); bytes > maxCompared {
		data.Why = fmt.Sprintf("The requests have %s together, which is too much to compare on a page.", operation.Size(int64(bytes)))
		v.render(http.StatusOK, "request.tmpl", data)
		return nil
	}
	before, after := joined(texts[0]), joined(texts[1])
	if data.Same = string(before) == string(after); !data.Same {
		from := fmt.Sprintf("request %d", data.N-1)
		if data.Against == "received" {
			from = "as received"
		}
		data.Diff = diff(unidiff.Between(from, before, fmt.Sprintf("request %d", data.N), after))
	}
	v.render(http.StatusOK, "request.tmpl", data)
	return nil
}

// maxCompared is the size of the largest texts that are compared, in bytes together.
const maxCompared = 32 << 20

// sizeOf returns the number of bytes of lines.
func sizeOf(lines []string) (n int) {
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// bodies reads the bodies of a request and returns the lines to compare.
func (v *visit) bodies(data *requestPage, previous furl.Seq) (texts [2][]string, err error) {
	ctx := v.r.Context()
	if data.Sent, err = newBody(v.s.SentBody(ctx, data.Request.Exchange)); err == nil {
		data.Received, err = newBody(v.s.ReceivedBody(ctx, data.Request.Exchange))
	}
	if errors.Is(err, storage.ErrNoContent) {
		data.Why = err.Error()
		return texts, nil
	}
	if err != nil {
		return texts, err
	}
	texts[1] = bodyLines(data.Sent.text)
	switch {
	case data.Against == "received":
		texts[0] = bodyLines(data.Received.text)
	case previous != 0:
		before, err := v.s.SentBody(ctx, previous)
		if errors.Is(err, storage.ErrNoContent) {
			data.Why = "The body of the previous request is not recorded, so there is nothing to compare with."
			return texts, nil
		}
		if err != nil {
			v.p.log.Error("request body not read", "session", v.s.ID(), "record", previous, "error", err)
			data.Why = "The previous request could not be read; furl's log has the reason."
			return texts, nil
		}
		texts[0] = bodyLines(before)
	}
	return texts, nil
}

// viewLines returns what the model saw as lines of text.
func (m *moment) viewLines(head furl.Seq, model furl.Model) ([]string, error) {
	st, err := m.snap.stateAt(head)
	if err != nil {
		return nil, err
	}
	var lines []string
	view := st.View(model)
	for i := range view.Messages {
		sh := &view.Messages[i]
		for j := range sh.Blocks {
			sb := &sh.Blocks[j]
			title := "──"
			if sh.Seq != 0 {
				title += " " + handle(sb.Pos)
			}
			title += " " + string(kindOf(sh.Msg, sb.Block))
			if sb.Block.Kind == furl.KindCall {
				title += " " + sb.Block.Name
			}
			lines = append(lines, title)
			lines = append(lines, strings.Split(strings.TrimRight(sb.Words(), "\n"), "\n")...)
		}
	}
	return lines, nil
}

// sendBody responds with the body of a request, byte for byte.
func (p *Page) sendBody(v *visit) error {
	var seq furl.Seq
	var name string
	err := v.readRequests(func(snap *snapshot) error {
		m, err := v.moment(snap)
		if err != nil {
			return err
		}
		r, err := v.request(m)
		if err == nil {
			seq, name = r.Exchange, fmt.Sprintf("%s-request-%d.json", v.s.ID(), r.Number)
		}
		return err
	})
	if err != nil {
		return err
	}
	if seq == 0 {
		return notFound("the bodies of this request are not recorded")
	}
	read := v.s.SentBody
	if v.r.FormValue("side") == "received" {
		read = v.s.ReceivedBody
	}
	b, err := read(v.r.Context(), seq)
	if errors.Is(err, storage.ErrNoContent) {
		return notFound("%v", err)
	}
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	v.send(http.StatusOK, b)
	return nil
}
