package setup

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/furlhq/furl/internal/agents"
)

// Options say how agents reach furl.
type Options struct {
	URL     string   // address of the gateway
	Command []string // the command of furl's MCP server, as agents start it
	// Anthropic and OpenAI are the base URLs to which the gateway forwards requests. A base
	// URL of another provider is not replaced, because its credential would be sent to
	// them. "": all are replaced.
	Anthropic, OpenAI string
	// Parts are what to set. Nil: all that the agent supports.
	Parts []agents.Part
}

// Plan is a change of configuration files that was not made yet.
type Plan struct {
	Files []File
	// Notes are what the user must know or do.
	Notes []string

	name    string
	folder  string // of the records
	record  *record
	planned []byte // the text of the record when the plan was made; nil: there was none
	undo    bool
}

// File is a change of one file.
type File struct {
	Path   string // as the agent names it
	Before []byte
	After  []byte
	Exists bool // before
	Remove bool // the file will be removed

	target  string // Path without links
	mode    fs.FileMode
	changes []change
	whole   bool              // furl writes the whole file, as for services
	shown   map[string]string // strings that the diff shows
	base    base
}

// base is the content of a file without furl's changes.
type base struct {
	data    []byte
	existed bool
	others  []string // digests of contents that furl wrote before
	dirs    []string
}

// Changes reports whether the plan changes a file.
func (p *Plan) Changes() bool { return slices.ContainsFunc(p.Files, File.differs) }

func (f File) differs() bool {
	return f.Remove || !f.Exists && f.After != nil || !bytes.Equal(f.Before, f.After)
}

// maxFile limits the size of a configuration file, in bytes.
const maxFile = 64 << 20

// New plans the setup of an agent. Folder is where records and backups of setups are
// kept. If the agent is set up already, the plan replaces that setup.
func New(folder string, c agents.Client, o *Options) (*Plan, error) {
	old, text, err := readRecord(folder, c.Name)
	if err != nil {
		return nil, err
	}
	p := &Plan{name: c.Name, folder: folder, record: &record{Agent: c.Name}, planned: text}
	done := map[string]bool{}
	for _, configured := range c.Files {
		path := configured.Path()
		if _, err := os.Stat(filepath.Dir(path)); configured.Project || configured.Optional && err != nil {
			continue
		}
		f, err := openFile(path)
		if err != nil {
			return nil, err
		}
		if err := f.reset(folder, old); err != nil {
			return nil, err
		}
		done[f.target] = true
		if !f.Exists && configured.Each != nil && len(configured.Settings) == 0 {
			continue
		}
		notes, err := f.set(configured, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p.Notes = append(p.Notes, notes...)
		p.Files = append(p.Files, *f)
	}
	// Files of the earlier setup that this one does not change.
	for _, r := range old.Files {
		if done[r.Path] {
			continue
		}
		f, err := openFile(r.Path)
		if err != nil {
			return nil, err
		}
		if err := f.reset(folder, old); err != nil {
			return nil, err
		}
		f.After, f.Remove = f.base.data, f.Exists && !f.base.existed
		p.Files = append(p.Files, *f)
	}
	return p, nil
}

// openFile reads a file, which may be missing.
func openFile(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, target: path, mode: 0o600, shown: map[string]string{}}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			f.target = filepath.Join(dir, filepath.Base(path))
		}
		return f, nil
	}
	if f.target, err = filepath.EvalSymlinks(path); err != nil {
		return nil, fmt.Errorf("%s is a link to a file that does not exist: correct or remove the link", path)
	}
	info, err := os.Stat(f.target)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is too large for a configuration file: at most %d MB", path, maxFile>>20)
	}
	f.Exists, f.mode = true, info.Mode().Perm()
	f.Before, err = os.ReadFile(f.target)
	return f, err
}

// reset finds the content without furl's changes.
func (f *File) reset(folder string, old *record) error {
	f.base = base{data: f.Before, existed: f.Exists}
	if r := old.file(f.target); r != nil {
		b, _, err := r.undo(folder, f)
		if err != nil {
			return err
		}
		f.base = b
		f.base.others = append(slices.Clone(r.Others), r.After)
		f.base.dirs = r.Dirs
	}
	return nil
}

// set plans the settings of a file.
func (f *File) set(configured agents.ConfigFile, o *Options) (notes []string, err error) {
	if configured.Text != "" {
		f.whole, f.After, f.Remove = true, f.base.data, f.Exists && !f.base.existed
		if o.Parts == nil || slices.Contains(o.Parts, agents.PartMCP) {
			f.After, f.Remove = []byte(strings.ReplaceAll(configured.Text, "{furl}", o.Command[0])), false
		}
		return nil, nil
	}
	d, err := parse(f.Path, f.base.data)
	if err != nil {
		return nil, fmt.Errorf("%w; correct the file, then run furl setup again", err)
	}
	settings := configured.Settings
	if configured.Each != nil {
		settings = append(configured.Each(d.tree), settings...)
	}
	if _, ok := d.lang.(tomlLanguage); ok {
		settings = leaves(settings)
	}
	for _, s := range settings {
		if o.Parts != nil && !slices.Contains(o.Parts, s.Part) {
			continue
		}
		value := s.Resolve(o.URL, o.Command)
		old, exists := lookup(d.tree, s.Path)
		if s.Keep && exists {
			continue
		}
		if s.Wrap != nil && exists {
			w, ok := s.Wrap(old, agents.StatusCommand(o.Command[0]))
			if !ok {
				continue
			}
			s, value = w, w.Value
		}
		if s.Part == agents.PartURL {
			was, _ := old.(string)
			if strings.Contains(was, "://") {
				f.shown[was] = publicURL(was)
			}
			if err := o.moves(&s, was); err != nil && s.Several {
				notes = append(notes, err.Error())
				continue
			} else if err != nil {
				return nil, fmt.Errorf("%w; --only mcp,status leaves base URLs alone", err)
			}
		}
		c, changed, err := d.apply(s.Path, value)
		if err != nil {
			return nil, err
		}
		f.own(value)
		if changed {
			f.changes = append(f.changes, c)
		}
	}
	f.After = f.base.data
	if len(f.changes) > 0 {
		f.After = d.bytes()
	} else {
		f.Remove = f.Exists && !f.base.existed
	}
	return notes, nil
}

// leaves returns a setting for each member of an object: tables of TOML are not values.
func leaves(settings []agents.Setting) (list []agents.Setting) {
	for _, s := range settings {
		v, err := hujson.Parse([]byte(s.Value))
		o, ok := v.Value.(*hujson.Object)
		if err != nil || !ok {
			list = append(list, s)
			continue
		}
		for _, m := range o.Members {
			leaf := s
			leaf.Path = append(slices.Clone(s.Path), m.Name.Value.(hujson.Literal).String())
			leaf.Value = string(s.Value[m.Value.StartOffset:m.Value.EndOffset])
			list = append(list, leaf)
		}
	}
	return list
}

// moves returns an error if a base URL is that of a provider to which the gateway does
// not forward. Its credential would be sent to another one. was is its value.
func (o *Options) moves(s *agents.Setting, was string) error {
	api := s.Upstream()
	to := o.OpenAI
	if api == "anthropic" {
		to = o.Anthropic
	}
	address := s.Now
	if strings.Contains(was, "://") {
		address = was
	}
	if to == "" || address == "" || sameProvider(address, to) || sameProvider(address, o.URL) || s.Also != nil && address == s.Now && s.Also(to) {
		return nil
	}
	shown := publicURL(address)
	path := strings.Join(s.Path, ".")
	err := fmt.Sprintf("%s stays, because its requests go to %s and the gateway forwards to %s, which would get their credential; if the gateway is started with furl serve --%s URL, add --%[4]s with that URL here, or set gateway.%[4]s in its configuration",
		path, shown, to, api)
	if u, _ := url.Parse(address); u != nil && isLoopback(u.Hostname()) {
		err += "; if that is an earlier address of the gateway, remove it first"
	}
	return errors.New(err)
}

// sameProvider reports whether two base URLs are the same, with or without a version.
func sameProvider(a, b string) bool {
	one, err := url.Parse(a)
	if err != nil {
		return false
	}
	other, err := url.Parse(b)
	if err != nil {
		return false
	}
	path := func(u *url.URL) string { return strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") }
	return one.Scheme == other.Scheme && sameHost(one, other) && path(one) == path(other)
}

// sameHost compares hosts and ports. All names of this machine are the same.
func sameHost(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return port(a) == port(b) && (strings.EqualFold(a.Hostname(), b.Hostname()) || isLoopback(a.Hostname()) && isLoopback(b.Hostname()))
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
