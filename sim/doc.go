// Package sim is a simulated provider without a model: a strict
// implementation of Anthropic Messages, OpenAI Chat Completions, OpenAI
// Responses and Gemini's generateContent as one [http.Handler]. An agent, or a program between an agent
// and its provider, can be run against it without a key, a network or costs.
// The sim refuses what a real provider would refuse.
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
// # Checks
//
// Each request is decoded and checked against the provider's rules, and
// refused with the provider's status, error format and text: calls and
// results in pairs, nothing empty, roles, cache breakpoints and their
// lifetimes, unknown fields and betas, the context window, the size of the
// body, credentials. Thinking in Anthropic's format is signed: changed
// thinking is refused, and on models that bind thinking to the messages
// before it, so is thinking after an edited prefix.
//
// # Sizes and costs
//
// Sizes are o200k_base counts times the model's scale, not those of the
// provider's tokenizer. The prompt cache is simulated with its minimum,
// lookback, breakpoints and lifetimes, and every answer is billed at the
// catalogue's prices. See [Sim.Bill].
//
// # Answers
//
// Answers come from a [Player]: an [Agent] with a few rules that calls the
// offered tools, a recording of a real session, a script, or a function. A
// [Fault] injects errors.
//
// A [Client] is the other side, for tests of programs in between.
package sim
