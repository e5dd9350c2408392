package cli_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// browse runs a command that serves the page, requests the address that it prints as a
// browser does, and interrupts the command. It prints the command's messages, the
// response and the exit code.
func browse() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[1], os.Args[2:]...)
	messages, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	lines := bufio.NewScanner(messages)
	for lines.Scan() {
		fmt.Println(lines.Text())
		_, url, ok := strings.Cut(lines.Text(), " listens on ")
		if !ok {
			continue
		}
		if err := visit(ctx, url); err != nil {
			fmt.Println(err)
		}
		_ = cmd.Process.Signal(os.Interrupt) // an error shows in the exit code
	}
	_ = cmd.Wait()
	fmt.Println("exit code", cmd.ProcessState.ExitCode())
}

// visit prints the status, the kind or target, and the body of an address.
func visit(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, cmp.Or(resp.Header.Get("Location"), resp.Header.Get("Content-Type")))
	_, err = io.Copy(os.Stdout, resp.Body)
	fmt.Println()
	return err
}
