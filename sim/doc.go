// Package sim is a provider without a model: a strict double of Anthropic
// Messages, OpenAI Chat Completions and OpenAI Responses behind one
// [http.Handler]. Whoever writes an agent, or something that stands between an
// agent and its provider, can run it against this without a key, a network or
// a bill, and is told what a real provider would have refused.
//
//	s := sim.New(&sim.Options{Window: 32_000})
//	srv := httptest.NewServer(s)
//	defer srv.Close()
//	… run the agent with its base URL set to srv.URL …
//	for _, r := range s.Requests() {
//		if r.Verdict == sim.VerdictRefused { … r.Error … }
//	}
//	fmt.Println(s.Bill().Cost)
//
// # What is checked
//
// Each request is decoded and held to the provider's rules, and refused with
// its status, error shape and text: calls paired with results, nothing empty,
// roles, cache marks and their lifetimes, unknown fields and betas, the
// context window, the size of the body, credentials. Thinking of Anthropic's
// format is signed: what was changed is refused, and on models that bind
// thinking to what stood before it, so is thinking behind an edited prefix.
//
// # What is counted
//
// Sizes are o200k_base counts times the model's scale; the rule is fixed, not
// the provider's own tokenizer. The prompt cache is simulated with its
// minimum, lookback, marks and lifetimes, and every answer is billed at the
// catalogue's prices. See [Sim.Bill].
//
// # Who answers
//
// A [Player]: an [Agent] of a few rules that calls whatever tools it is
// offered, a recording of a real session, a script, or a function of the
// caller's. On demand something goes wrong, see [Fault].
//
// A [Client] is the other half, for tests of what stands in between.
package sim
