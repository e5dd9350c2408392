package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// digest computes Task.Digest. Comments and layout of task.yaml do not count.
func (t *Task) digest() (string, error) {
	h := sha256.New()
	head, err := json.Marshal([]any{t.Name, t.Instruction, t.Setup, t.Check, t.TimeLimit, t.CheckTimeLimit, archiveOf(t.Repository) != nil})
	if err != nil {
		return "", err
	}
	h.Write(head)
	for _, path := range []string{t.Repository, t.CheckFiles, t.Script} {
		fmt.Fprintf(h, "\x00tree %t\n", path != "")
		if path == "" {
			continue
		}
		if err := hashTree(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}

// hashTree hashes names, kinds, the executable bit, links and contents below a path.
func hashTree(h hash.Hash, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if path == root && d.Type()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link: name the file or folder itself", filepath.Base(path))
		}
		switch {
		case d.IsDir():
			fmt.Fprintf(h, "dir %q\n", rel)
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "link %q %q\n", rel, filepath.ToSlash(to))
		case d.Type().IsRegular():
			return hashFile(h, path, rel)
		default:
			return fmt.Errorf("%s is not a file, a folder or a link", rel)
		}
		return nil
	})
}

func hashFile(h hash.Hash, path, rel string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "file %q %t %d\n", rel, fi.Mode()&0o111 != 0, fi.Size())
	_, err = io.Copy(h, f)
	return err
}
