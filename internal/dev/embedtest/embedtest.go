// Package embedtest is a server of OpenAI's embeddings API for tests: its
// vectors depend on the texts alone, and texts that share words or beginnings
// of words are near one another.
package embedtest

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// Dims is the length of the vectors.
const Dims = 384

// Server counts what it is asked, and fails where it is told to.
type Server struct {
	URL string // what a client takes as its base

	mu       sync.Mutex
	requests int
	texts    []string
	keys     []string
	fail     []int
	down     int
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	s := &Server{}
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(h.Close)
	s.URL = h.URL + "/v1"
	return s
}

// Fail makes the next requests end with these statuses.
func (s *Server) Fail(statuses ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = append(s.fail, statuses...)
}

// Down makes all requests end with a status; 0: none any more.
func (s *Server) Down(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = status
}

// Asked gives the number of requests so far, the texts of those answered, and
// the Authorization headers.
func (s *Server) Asked() (requests int, texts, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, append([]string(nil), s.texts...), append([]string(nil), s.keys...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/embeddings" || r.Method != http.MethodPost || in.Model == "" {
		http.Error(w, "no such request", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests++
	s.keys = append(s.keys, r.Header.Get("Authorization"))
	status := s.down
	if len(s.fail) > 0 {
		status, s.fail = s.fail[0], s.fail[1:]
	}
	if status == 0 {
		s.texts = append(s.texts, in.Input...)
	}
	s.mu.Unlock()
	if status != 0 {
		http.Error(w, `{"error":{"message":"told to fail, `+r.Header.Get("Authorization")+`"}}`, status)
		return
	}
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var out struct {
		Data []item `json:"data"`
	}
	for i := len(in.Input) - 1; i >= 0; i-- { // the order says nothing
		out.Data = append(out.Data, item{i, Vector(in.Input[i])})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// Vector is the vector of a text: each word, and each three letters in a row
// of it, has a direction of its own.
func Vector(text string) []float32 {
	v := make([]float32, Dims)
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, w := range words {
		if len(w) < 3 {
			continue
		}
		add(v, w, 1)
		padded := "^" + w + "$"
		for i := 0; i+3 <= len(padded); i++ {
			add(v, padded[i:i+3], 0.5)
		}
	}
	norm := 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	if norm == 0 {
		v[0], norm = 1, 1
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

// add adds a feature: eight of the numbers go up or down.
func add(v []float32, feature string, weight float32) {
	h := fnv.New64a()
	h.Write([]byte(feature))
	x := h.Sum64()
	for range 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		if x&1 == 0 {
			v[x>>8%Dims] += weight
		} else {
			v[x>>8%Dims] -= weight
		}
	}
}
