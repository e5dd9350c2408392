package replay

import "sync"

// progress reports finished runs to the caller.
type progress struct {
	mu   sync.Mutex
	at   Progress
	tell func(Progress)
}

func newProgress(o *Options, file string, files, total int) *progress {
	p := &progress{at: Progress{File: file, Files: files, Total: total}, tell: o.Progress}
	p.report()
	return p
}

// step counts one finished run.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at.Done++
	p.report()
}

func (p *progress) report() {
	if p.tell != nil {
		p.tell(p.at)
	}
}
