package serving

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/filelock"
	"github.com/furlhq/furl/internal/fileowner"
	"github.com/furlhq/furl/internal/private"
)

// namedKeys reads the file of named keys. Without one, they are nil. A file that does
// not exist yet has no keys.
func namedKeys(c *config.Config, file string) (*access.Keys, error) {
	if c.Gateway.KeysFile == "" {
		return nil, nil
	}
	list, err := ReadNamedKeys(config.Beside(file, c.Gateway.KeysFile))
	if err != nil {
		return nil, fmt.Errorf("gateway.keys_file: %w", err)
	}
	return access.NewKeys(list), nil
}

// ReadNamedKeys reads the file of named keys.
func ReadNamedKeys(name string) ([]access.Key, error) {
	data, err := private.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keys, err := access.ParseKeys(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return keys, nil
}

// keepAccess gives a new file the mode, owner and group of the one that it replaces, so that
// a gateway that could read that one can read it. The first one gets the folder's owner.
func keepAccess(w *os.File, name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fileowner.Keep(w, filepath.Dir(name))
	}
	if err != nil {
		return err
	}
	return errors.Join(fileowner.Keep(w, name), w.Chmod(info.Mode().Perm()))
}

// ChangeNamedKeys replaces the keys of a file by those that change returns. Commands that
// run at the same time wait for each other.
func ChangeNamedKeys(name string, change func([]access.Key) ([]access.Key, error)) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	unlock, err := filelock.Lock(name + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	keys, err := ReadNamedKeys(name)
	if err != nil {
		return err
	}
	if keys, err = change(keys); err != nil {
		return err
	}
	data := access.FormatKeys(keys)
	if len(data) > private.MaxSize {
		return errors.New("too many keys for a file of 1 MB: use another gateway.keys_file, or tokens (gateway.oidc)")
	}
	w, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(w.Name())
	_, err = w.Write(data)
	if err := errors.Join(err, keepAccess(w, name), w.Sync(), w.Close()); err != nil {
		return err
	}
	return os.Rename(w.Name(), name)
}
