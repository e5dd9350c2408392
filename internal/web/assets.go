package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"sync"

	"github.com/furlhq/furl/internal/htmx"
	"github.com/furlhq/furl/internal/look"
	"github.com/furlhq/furl/internal/report"
)

//go:embed page/*.tmpl
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// sharedAssets returns the files of other packages, which other pages have too.
func sharedAssets() map[string]string {
	return map[string]string{
		"look.css":    look.Style,
		"htmx.min.js": htmx.Script(),
		"charts.css":  report.Style(),
		"charts.js":   report.Script(),
	}
}

// pages are the templates.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "page/*.tmpl"))
})

// assetSet are the scripts and styles in memory, by their names.
type assetSet struct {
	path  string // of the folder, with a digest of all contents
	plain map[string][]byte
	small map[string][]byte // compressed
}

// assets reads the embedded files once.
var assets = sync.OnceValue(func() *assetSet {
	set := &assetSet{plain: make(map[string][]byte), small: make(map[string][]byte)}
	sum := sha256.New()
	add := func(name string, b []byte) {
		sum.Write([]byte(name))
		sum.Write(b)
		set.plain[name], set.small[name] = b, compress(b)
	}
	shared := sharedAssets()
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		add(name, []byte(shared[name]))
	}
	err := fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		add(name[len("assets/"):], b)
		return nil
	})
	if err != nil {
		panic(err) // they are embedded
	}
	set.path = prefix + "/assets/" + hex.EncodeToString(sum.Sum(nil)[:6])
	return set
})

// ServeAsset implements gateway.Page. Files may be cached forever, because their folder's
// name changes with their contents.
func (p *Page) ServeAsset(w http.ResponseWriter, r *http.Request) {
	setHeaders(w)
	set := assets()
	v := &visit{p: p, w: w, r: r}
	dir, name := path.Split(r.URL.Path)
	body, ok := set.plain[name]
	if !ok || path.Clean(dir) != set.path {
		v.fail(http.StatusNotFound, "there is no such file; reload the page")
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	v.send(http.StatusOK, body)
}

var gzipWriters = sync.Pool{New: func() any { w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return w }}

// compress returns b in gzip format.
func compress(b []byte) []byte {
	var out bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(b) // a buffer has no errors
	_ = w.Close()
	return out.Bytes()
}
