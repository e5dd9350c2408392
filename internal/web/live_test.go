package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// stream reads the ids of the records of a live stream.
func stream(t *testing.T, ctx context.Context, url, lastID string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, type %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	ids := make(chan string, 1000)
	go func() {
		defer res.Body.Close()
		defer close(ids)
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				ids <- id
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && !json.Valid([]byte(text)) {
				ids <- "invalid JSON: " + text
			}
			if lines.Text() == "event: reload" {
				ids <- "reload"
			}
		}
	}()
	return ids
}

// Many browsers get each record once and in order, also after a lost connection.
func TestLive(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	steps := sessiontest.Steps(t, 60, 300)
	sessiontest.AppendAll(t, s, steps[:21])
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID()) + "/live"
	const readers = 40
	var list []<-chan string
	for range readers {
		list = append(list, stream(t, t.Context(), url+"?after=21", ""))
	}
	lost, cut := context.WithCancel(t.Context())
	first := stream(t, lost, url+"?after=21", "")
	for i := 21; i < len(steps)-1; i += 2 {
		sessiontest.AppendAll(t, s, steps[i:i+2])
	}
	var wait sync.WaitGroup
	for n, ids := range list {
		wait.Go(func() { expectIDs(t, fmt.Sprint("reader ", n), ids, 22, len(steps)) })
	}
	expectIDs(t, "before the connection is lost", first, 22, 40)
	cut()
	expectIDs(t, "after the connection was lost", stream(t, t.Context(), url+"?after=21", "40"), 41, len(steps))
	expectIDs(t, "a tab with an older page", stream(t, t.Context(), url+"?after=3", ""), 4, len(steps))
	wait.Wait()
	// Such as after a crash that has lost the newest records.
	if status, text := get(t, url+"?after=1000"); status != 200 || !strings.Contains(text, "event: reload") {
		t.Errorf("a record that does not exist: status %d, %q", status, text)
	}
	if status, _ := get(t, url+"?after=x"); status != 400 {
		t.Errorf("an invalid record: status %d", status)
	}
}

func expectIDs(t *testing.T, who string, ids <-chan string, from, to int) {
	for want := from; want <= to; want++ {
		select {
		case id := <-ids:
			if id != fmt.Sprint(want) {
				t.Errorf("%s: record %s, want %d", who, id, want)
				return
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: no record %d", who, want)
			return
		}
	}
}

// A reader that is slower than what a hub keeps is told to load the page again.
func TestLiveSlow(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 600, 10))
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID()) + "/live"
	want, last := 2, int(s.Info().Records)
	for id := range stream(t, t.Context(), url+"?after=1", "") {
		if id == "reload" {
			return
		}
		if id != fmt.Sprint(want) {
			t.Fatalf("record %s, want %d or to load the page again", id, want)
		}
		if want++; want > last {
			return
		}
	}
	t.Errorf("the stream ended before record %d", want)
}
