package eval

import (
	"fmt"
	"math"
	"slices"

	"github.com/furlhq/furl/internal/numbers"
)

// Report summarizes an evaluation.
type Report struct {
	Plan
	Rounds   int          `json:"runs"` // per task and policy, as wanted
	Finished int          `json:"finished"`
	Wanted   int          `json:"wanted"`
	Cost     float64      `json:"cost"`
	Arms     []Arm        `json:"policies_compared"`
	Against  []Comparison `json:"comparisons"`
	ByTask   []TaskReport `json:"by_task"`
	// Detectable is the smallest difference of success rates that the wanted runs can
	// tell from chance. Noise says so in words.
	Detectable float64  `json:"detectable"`
	Noise      []string `json:"noise"`
	Notes      []string `json:"notes"`
	Results    []Result `json:"results"`
}

// Arm has the results of all tasks with one policy. Figures without Total are means of
// a run.
type Arm struct {
	Policy     string   `json:"policy"`
	Runs       int      `json:"runs"`
	Solved     int      `json:"solved"`
	TimeLimits int      `json:"time_limits"`
	Rate       float64  `json:"success_rate"`
	Interval   Interval `json:"interval"` // Wilson, 95%

	TotalCost    float64 `json:"total_cost"`
	Cost         float64 `json:"cost"`
	Tokens       float64 `json:"tokens"`
	Output       float64 `json:"output_tokens"`
	Requests     float64 `json:"requests"`
	Steps        float64 `json:"steps"`
	Calls        float64 `json:"calls"`
	Again        float64 `json:"calls_made_again"`
	Repeated     float64 `json:"repeated_calls"`
	Edits        float64 `json:"edits"`
	Blind        float64 `json:"blind_edits"`
	Repaired     float64 `json:"repaired_edits"`
	RepairTokens float64 `json:"repair_tokens"`
	Reductions   float64 `json:"reductions"`
	Seconds      float64 `json:"agent_seconds"`
}

// Comparison compares a policy with the baseline over the pairs of runs of the same
// task and number.
type Comparison struct {
	Policy     string `json:"policy"`
	Baseline   string `json:"baseline"`
	Pairs      Pairs  `json:"pairs"`
	Difference struct {
		Rate float64 `json:"rate"` // of the policy minus that of the baseline
		// Interval contains both of the others.
		Interval  Interval  `json:"interval"`
		Newcombe  Interval  `json:"newcombe"`
		Bootstrap *Interval `json:"bootstrap,omitempty"` // over tasks
	} `json:"difference"`
	// CostRatio is the cost of the policy's runs over that of the baseline's, nil
	// without costs. CostInterval is from a bootstrap over tasks.
	CostRatio    *float64  `json:"cost_ratio"`
	CostInterval *Interval `json:"cost_interval,omitempty"`
}

// TaskReport has the results of a task by policy.
type TaskReport struct {
	Task string `json:"task"`
	Arms []Arm  `json:"policies"`
}

// BaselineName is the policy that others are compared with, if it is one of them.
const BaselineName = "none"

// NewReport summarizes results. rounds is how many runs of each task and policy are
// wanted; results beyond that count too.
func NewReport(r *Results, rounds int) *Report {
	rep := &Report{
		Plan: r.Plan, Rounds: rounds, Finished: len(r.List), Wanted: max(len(r.List), rounds*len(r.Plan.Tasks)*len(r.Plan.Policies)),
		Arms: []Arm{}, Against: []Comparison{}, ByTask: []TaskReport{}, Results: r.List,
	}
	rep.Cost, _ = r.Cost()
	for _, policy := range r.Plan.Policies {
		rep.Arms = append(rep.Arms, newArm(policy, r.List, ""))
	}
	for _, task := range sortedKeys(r.Plan.Tasks) {
		one := TaskReport{Task: task}
		for _, policy := range r.Plan.Policies {
			one.Arms = append(one.Arms, newArm(policy, r.List, task))
		}
		rep.ByTask = append(rep.ByTask, one)
	}
	baseline := r.Plan.Policies[0]
	if slices.Contains(r.Plan.Policies, BaselineName) {
		baseline = BaselineName
	}
	for _, policy := range r.Plan.Policies {
		if policy != baseline {
			rep.Against = append(rep.Against, rep.compare(policy, baseline))
		}
	}
	rep.noise()
	rep.notes()
	return rep
}

// newArm sums up the results of a policy, of one task or, if it is "", of all.
func newArm(policy string, list []Result, task string) Arm {
	a := Arm{Policy: policy}
	for i := range list {
		one := &list[i]
		if one.Policy != policy || task != "" && one.Task != task {
			continue
		}
		a.Runs++
		switch one.Outcome {
		case Solved:
			a.Solved++
		case TimeLimit:
			a.TimeLimits++
		}
		a.TotalCost += one.Cost
		a.Tokens += float64(one.Tokens)
		a.Output += float64(one.Output)
		a.Requests += float64(one.Requests)
		a.Steps += float64(one.Steps)
		a.Calls += float64(one.Calls)
		a.Again += float64(one.Again)
		a.Repeated += float64(one.Repeated)
		a.Edits += float64(one.Edits)
		a.Blind += float64(one.Blind)
		a.Repaired += float64(one.Repaired)
		a.RepairTokens += float64(one.RepairTokens)
		a.Reductions += float64(one.Reductions)
		a.Seconds += one.Seconds
	}
	a.Interval = Wilson(a.Solved, a.Runs)
	if a.Runs == 0 {
		return a
	}
	n := float64(a.Runs)
	a.Rate, a.Cost = float64(a.Solved)/n, a.TotalCost/n
	for _, mean := range []*float64{&a.Tokens, &a.Output, &a.Requests, &a.Steps, &a.Calls, &a.Again, &a.Repeated, &a.Edits, &a.Blind, &a.Repaired, &a.RepairTokens, &a.Reductions, &a.Seconds} {
		*mean /= n
	}
	return a
}

// pair is the run of a task with a policy, and the one with the baseline.
type pair struct{ policy, baseline *Result }

// pairsOf groups the pairs by task, in the order of the tasks' names.
func (rep *Report) pairsOf(policy, baseline string) [][]pair {
	byRun := make(map[Run]*Result)
	most := 0
	for i := range rep.Results {
		byRun[rep.Results[i].Run] = &rep.Results[i]
		most = max(most, rep.Results[i].Number)
	}
	var groups [][]pair
	for _, task := range sortedKeys(rep.Tasks) {
		var group []pair
		for n := 1; n <= most; n++ {
			p := pair{byRun[Run{task, policy, n}], byRun[Run{task, baseline, n}]}
			if p.policy != nil && p.baseline != nil {
				group = append(group, p)
			}
		}
		groups = append(groups, group)
	}
	return groups
}

func (rep *Report) compare(policy, baseline string) Comparison {
	c := Comparison{Policy: policy, Baseline: baseline}
	groups := rep.pairsOf(policy, baseline)
	all := slices.Concat(groups...)
	c.Pairs = countPairs(all)
	d := &c.Difference
	d.Rate, d.Newcombe = c.Pairs.Difference(), NewcombePaired(c.Pairs)
	d.Interval = d.Newcombe
	if i, ok := Bootstrap(groups, rep.Seed, func(p []pair) float64 { return countPairs(p).Difference() }); ok {
		d.Bootstrap = &i
		d.Interval = d.Interval.union(i)
	}
	if ratio := costRatio(all); !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
		c.CostRatio = &ratio
		if i, ok := Bootstrap(groups, rep.Seed, costRatio); ok {
			c.CostInterval = &i
		}
	}
	return c
}

func countPairs(list []pair) (n Pairs) {
	for _, p := range list {
		switch first, second := p.policy.Outcome == Solved, p.baseline.Outcome == Solved; {
		case first && second:
			n.Both++
		case first:
			n.First++
		case second:
			n.Second++
		default:
			n.Neither++
		}
	}
	return n
}

// costRatio is the cost of the policy's runs over that of the baseline's, NaN if a run
// has requests without a known price.
func costRatio(list []pair) float64 {
	var cost, base float64
	for _, p := range list {
		if p.policy.Unpriced+p.baseline.Unpriced > 0 {
			return math.NaN()
		}
		cost += p.policy.Cost
		base += p.baseline.Cost
	}
	return cost / base
}

// noise says what the number of runs can and cannot show at the observed rate of
// success.
func (rep *Report) noise() {
	runs, tasks := rep.Rounds, len(rep.Tasks)
	rate, solved := 0.5, 0
	for i := range rep.Arms {
		solved += rep.Arms[i].Solved
	}
	if rep.Finished > 0 {
		rate = float64(solved) / float64(rep.Finished)
	}
	rep.Detectable = Detectable(rate, runs*tasks)
	with := "With"
	if rep.Finished < rep.Wanted {
		with = "When all runs are finished: with"
	}
	of := fmt.Sprintf("%s %s of %s and about %.0f%% solved", with, numbers.Count(runs, "run"), numbers.Count(tasks, "task"), 100*rate)
	if rep.Detectable >= 1 {
		rep.Noise = append(rep.Noise, fmt.Sprintf("%s, no difference of success rates can be told from chance.", of))
	} else {
		rep.Noise = append(rep.Noise, fmt.Sprintf("%s, a difference below about %.0f points cannot be told from chance, and a true difference of that size is missed about every second time.", of, 100*rep.Detectable))
	}
	need := (Needed(0.1) + tasks - 1) / tasks
	rep.Noise = append(rep.Noise, fmt.Sprintf("To find a true difference of 10 points in 4 of 5 evaluations, up to %s of each task are necessary (--runs %d).", numbers.Count(need, "run"), need))
	if tasks < 10 {
		rep.Noise = append(rep.Noise, "Runs of one task are alike. For conclusions about other tasks, more tasks are worth more than more runs.")
	}
	if n := len(rep.Against); n > 1 {
		rep.Noise = append(rep.Noise, fmt.Sprintf("There are %d comparisons. Without any true difference, about 1 in 20 is called unlikely to be chance.", n))
	}
	if rep.Simulated {
		rep.Noise = append(rep.Noise, "A simulated provider replied with fixed texts: success rates say that the set-up works, and nothing about a policy.")
	}
}

// notes lists what makes the figures doubtful.
func (rep *Report) notes() {
	rep.Notes = []string{}
	say := func(format string, args ...any) { rep.Notes = append(rep.Notes, fmt.Sprintf(format, args...)) }
	if left := rep.Wanted - rep.Finished; left > 0 {
		say("%s not run yet: the same command continues the evaluation; if the budget has stopped it, use a larger --budget", numbers.Count(left, "run"))
	}
	errors, unpriced, limits, exits := 0, 0, 0, 0
	versions := map[string]string{}
	for i := range rep.Results {
		one := &rep.Results[i]
		versions[one.Version] = ""
		switch {
		case one.Outcome == TimeLimit:
			limits++
		case one.AgentExit != 0:
			exits++
		}
		if one.Unpriced > 0 {
			unpriced++
		}
		for status := range one.Unanswered {
			if status == 401 || status == 403 || status == 429 || status >= 500 {
				errors++
				break
			}
		}
	}
	if errors > 0 {
		say("%s had requests that failed with status 401, 403, 429 or 5xx: they may have failed because of the provider", numbers.Count(errors, "run"))
	}
	if exits > 0 {
		say("in %s the agent exited with an error, see agent.log; they were checked like the others", numbers.Count(exits, "run"))
	}
	if limits > 0 {
		say("%s reached the time limit of the task and count as not solved", numbers.Count(limits, "run"))
	}
	if unpriced > 0 {
		say("%s used a model without a known price: its requests are not part of the costs", numbers.Count(unpriced, "run"))
	}
	if len(versions) > 1 {
		say("the runs were made with several versions of furl: %v", sortedKeys(versions))
	}
}
