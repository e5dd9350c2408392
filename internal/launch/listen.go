package launch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// StopTime is the time that requests of a local server and a command that furl ran have to
// end.
const StopTime = 5 * time.Second

// ListenLocal serves on a free local port until stop is called.
func ListenLocal(h http.Handler) (url string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: HeaderTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln) // ends with Close
	}()
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), StopTime)
		defer cancel()
		_ = srv.Shutdown(ctx) // waits for running requests
		_ = srv.Close()
		<-done
	}
	return "http://" + ln.Addr().String(), stop, nil
}

// HeaderTimeout is the time that a client of a local server has to send a request's head.
const HeaderTimeout = 30 * time.Second
