package anthropic

// CountPath implements wire.API.
func (codec) CountPath() string { return "/messages/count_tokens" }

// Ends implements wire.API.
func (codec) Ends(event string, _ []byte) bool { return event == "message_stop" || event == "error" }

// Continues implements wire.API. Chat Completions and Responses have words of
// their own for the same.
func (codec) Continues(stop string) bool { return stop == "tool_use" || stop == "end_turn" }
