package transcript

// format is one kind of recording.
type format struct {
	name  string // as Recording.Format gives it
	agent string // as Recording.Agent gives it
	// detect says whether the file is of this format. It sees the first
	// records only and must tell this format from all others: the table is
	// gone through in order, but no entry relies on that.
	detect func(p *probe) bool
	// read gives the sessions. It reports what it cannot use with in.skip,
	// what it mends with in.note, and fails only if nothing at all can be
	// read. A nil read marks a file that stands beside a recording of this
	// agent but is none; folders pass over it in silence.
	read func(in *input) ([]*Session, error)
}

// formats is every known format.
var formats = []*format{
	furlOwn,
	claudeCode,
	{name: "codex", agent: "Codex", detect: isCodex, read: readCodex},
	{name: "opencode", agent: "opencode", detect: isOpencode, read: readOpencode},
	{name: "pi", agent: "pi", detect: isPi, read: readPi},
	{name: "gemini-cli", agent: "Gemini CLI", detect: isGemini, read: readGemini},
	{name: "copilot-cli", agent: "Copilot CLI", detect: isCopilot, read: readCopilot},
	{name: "swe-agent", agent: "SWE-agent", detect: isSWEAgent, read: readSWEAgent},
	{name: "mini-swe-agent", agent: "mini-swe-agent", detect: isMiniSWE, read: readMiniSWE},
	{name: "tau2-bench", detect: isTau2, read: readTau2},
	{name: "openhands", agent: "OpenHands", detect: isOpenHands, read: readOpenHands},
	{agent: "OpenHands", detect: isOpenHandsState},
	{name: "openai-chat", detect: isOpenAIChat, read: readOpenAIChat},
	{name: "openai-responses", detect: isOpenAIResponses, read: readOpenAIResponses},
	anthropicRequest,
	roo,
	rooBeside,
	aider,
}

// Formats names the known formats, as Recording.Format gives them.
func Formats() []string {
	var names []string
	for _, f := range formats {
		if f.read != nil {
			names = append(names, f.name)
		}
	}
	return names
}

func recognise(p *probe) *format {
	for _, f := range formats {
		if f.detect(p) {
			return f
		}
	}
	return nil
}
