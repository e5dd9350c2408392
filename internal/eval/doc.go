// Package eval runs a set of tasks through an agent under several context policies,
// several times each, and compares how often the tasks were solved.
//
// A task (Task) is the state of a repository, an instruction, and a command that checks
// the result. A Plan lists the runs of an evaluation in their order: the policies of a
// task run one after the other, in random order. Run executes the runs that a Results
// folder does not have yet. Each run has its own copy of the repository and its own home
// folder. That isolates files and is not a sandbox: the agent has all rights of the user.
// Report summarizes the results with confidence intervals.
//
// The package does not know the gateway: Options.Gateway starts one for each run and
// returns what it measured. Measure computes the measures of a recorded session.
package eval
