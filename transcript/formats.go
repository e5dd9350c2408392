package transcript

// format is one kind of recording.
type format struct {
	name  string // value of Recording.Format
	agent string // value of Recording.Agent
	// detect reports whether the file is in this format. It sees only the
	// first records and must distinguish this format from all others: the
	// table is searched in order, but no entry relies on that.
	detect func(p *probe) bool
	// read returns the sessions. It reports unusable data with in.skip and
	// repairs with in.note, and fails only if nothing can be read. A nil read
	// means that the file belongs to this agent but is not a recording;
	// folders skip it silently.
	read func(in *input) ([]*Session, error)
	// cut says whether a large file can be read in parts of which one begins with a
	// record, and begins with what every part has to begin with; nil: it cannot be.
	cut    func(record []byte) cutAt
	header func(record []byte) headerRecord
}

// formats is every known format.
var formats = []*format{
	furlOwn,
	claudeCode,
	{name: "codex", agent: "Codex", detect: isCodex, read: readCodex, cut: cutCodex, header: headerCodex},
	{name: "opencode", agent: "opencode", detect: isOpencode, read: readOpencode},
	{name: "pi", agent: "pi", detect: isPi, read: readPi},
	openclawBeside,
	{name: "gemini-cli", agent: "Gemini CLI", detect: isGemini, read: readGemini},
	{name: "qwen-code", agent: "Qwen Code", detect: isQwen, read: readQwen},
	{name: "iflow", agent: "iFlow", detect: isIFlow, read: readIFlow},
	{name: "copilot-cli", agent: "Copilot CLI", detect: isCopilot, read: readCopilot},
	{name: "kimi-code", agent: "Kimi Code", detect: isKimi, read: readKimi},
	{name: "cline", agent: "Cline", detect: isCline, read: readCline},
	clineBeside,
	{name: "continue", agent: "Continue", detect: isContinue, read: readContinue},
	continueBeside,
	{name: "droid", agent: "Droid", detect: isDroid, read: readDroid},
	droidBeside,
	{name: "nanocoder", agent: "nanocoder", detect: isNanocoder, read: readNanocoder},
	nanocoderBeside,
	{name: "code-assistant", agent: "code-assistant", detect: isCodeAssistant, read: readCodeAssistant},
	codeAssistantBeside,
	crush,
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
	specStory,
	aider,
}

// Formats returns the names of the known formats, the values of
// Recording.Format.
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
