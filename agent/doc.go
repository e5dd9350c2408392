// Package agent is an agent loop on a session: it sends the session's context to a
// model, runs the tools that the model calls, and repeats until the model ends.
//
//	a, err := agent.New(s, agent.Model{Format: furl.FormatAnthropic, ID: "claude-sonnet-4-5", Key: key}, &agent.Options{Tools: tools})
//	for e, err := range a.Run(ctx, agent.Text("Fix the failing test.")) {
//		…
//	}
//
// The session has the whole state. What the model, the tools and the user say is
// recorded before the next request, so a program can end at any time and continue
// with a new Agent of the same session:
//
//   - If a run is interrupted, by its context or because the caller leaves the loop,
//     the text so far is recorded, and each call without a result gets one that says
//     so.
//   - If the process was killed, the next Run runs the calls without results again or
//     answers them as interrupted (Options.Rerun). Then it continues.
//
// Before each request the session's policy makes the context fit the window of the
// model. A policy that shows summaries gets them from the same model or a cheaper one
// (Options.Summaries), and the run waits for them.
package agent
