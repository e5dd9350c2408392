package web

import (
	"fmt"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// exportPage is the data of the page that offers exports.
type exportPage struct {
	ID       furl.SessionID
	Title    string
	Messages int
}

// export sends a session as one HTML file: with content, or its structure. Without the
// parameter "content" it is a page that offers both.
func (p *Page) export(v *visit) error {
	opts := &transcript.ExportOptions{Model: v.s.Model(v.s.Meta().Model)}
	name := "furl-structure.html" // without the id of the session
	switch content := v.r.FormValue("content"); content {
	case "":
		info := v.s.Info()
		v.render(http.StatusOK, "export.tmpl", &exportPage{v.s.ID(), v.listed(info).Title, info.Messages})
		return nil
	case "full":
		name = fmt.Sprintf("furl-%s.html", v.s.ID())
	case "structure":
		opts.Structure = true
	default:
		return badRequest("invalid content %.20q: expected full or structure", content)
	}
	rec, err := recordingOf(v.s)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	if _, err := transcript.Export(v.r.Context(), v.w, "html", rec, opts); err != nil {
		if v.r.Context().Err() == nil {
			v.p.log.Error("export failed", "session", v.s.ID(), "error", err)
		}
		panic(http.ErrAbortHandler) // so that the browser does not take it for complete
	}
	return nil
}
