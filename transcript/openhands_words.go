package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// The texts that OpenHands generates; see its ConversationMemory.

// ohMessage returns a message's text and images.
func ohMessage(args object) []piece {
	pieces := []piece{words(args.str("content"))}
	var urls []string
	_ = lenient(args["image_urls"], &urls) // null or another type: no images
	for i, url := range urls {
		if pic, ok := dataPicture("image/png", url); ok {
			pieces = append(pieces, words(fmt.Sprintf("Image %d:", i+1)), piece{kind: furl.KindImage, images: []picture{pic}})
		}
	}
	return pieces
}

// ohWords returns an observation's text with the text that OpenHands adds.
func ohWords(e *ohEvent) (text string, failed bool) {
	text = e.Content
	switch e.Observation {
	case "run":
		extras := objectOf(e.Extras)
		meta := extras.object("metadata")
		text = meta.str("prefix") + text + meta.str("suffix")
		if dir := meta.str("working_dir"); dir != "" {
			text += "\n[Current working directory: " + dir + "]"
		}
		if py := meta.str("py_interpreter_path"); py != "" {
			text += "\n[Python interpreter: " + py + "]"
		}
		if !meta.has("exit_code") && extras.has("exit_code") { // until 2024
			code := extras.num("exit_code")
			text += fmt.Sprintf("\n[Command %d finished with exit code %d]", extras.num("command_id"), code)
			failed = code != 0
		}
		if meta.has("exit_code") {
			if code := meta.num("exit_code"); code != -1 {
				text += fmt.Sprintf("\n[Command finished with exit code %d]", code)
				failed = code != 0
			}
		}
	case "error":
		text, failed = text+"\n[Error occurred in processing last action]", true
	case "user_rejected":
		text, failed = "OBSERVATION:\n"+text+"\n[Last action has been rejected by the user]", true
	}
	return text, failed || e.Success != nil && !*e.Success
}

// recalled formats what OpenHands knows of the workspace and of the task.
// Knowledge that was sent once is not sent again.
func (o *openHands) recalled(extras object) string {
	var b strings.Builder
	if repo := extras.str("repo_name") + extras.str("repo_directory"); repo != "" {
		fmt.Fprintf(&b, "<REPOSITORY_INFO>\nRepository %s in directory %s\n</REPOSITORY_INFO>\n", extras.str("repo_name"), extras.str("repo_directory"))
	}
	if text := extras.str("repo_instructions"); text != "" {
		fmt.Fprintf(&b, "<REPOSITORY_INSTRUCTIONS>\n%s\n</REPOSITORY_INSTRUCTIONS>\n", text)
	}
	hosts := slices.Sorted(maps.Keys(extras.object("runtime_hosts")))
	if date := extras.str("date"); date != "" || len(hosts) > 0 {
		b.WriteString("<RUNTIME_INFORMATION>\n")
		for _, h := range hosts {
			fmt.Fprintf(&b, "* %s (port %s)\n", h, extras.object("runtime_hosts")[h])
		}
		if text := extras.str("additional_agent_instructions"); text != "" {
			b.WriteString(text + "\n")
		}
		fmt.Fprintf(&b, "Today's date is %s.\n</RUNTIME_INFORMATION>\n", date)
	}
	for _, raw := range listOf(extras["microagent_knowledge"]) {
		k := objectOf(raw)
		if name := k.str("name"); !o.known[name] {
			o.known[name] = true
			fmt.Fprintf(&b, "<EXTRA_INFO>\nIncluded because of the keyword %q.\n%s\n</EXTRA_INFO>\n", k.str("trigger"), k.str("content"))
		}
	}
	return b.String()
}

// ohActions are the actions of the agent. Older versions record them without
// a call; the command is then in their text.
var ohActions = map[string]bool{
	"run": true, "run_ipython": true, "read": true, "write": true, "edit": true, "browse": true,
	"browse_interactive": true, "think": true, "delegate": true,
}

// ohActionText formats an action without a call: the thought, and the command in
// the markup that the agents of that time used.
func ohActionText(action string, args object) string {
	tag, text := "execute_bash", args.str("command")
	switch action {
	case "run_ipython":
		tag, text = "execute_ipython", args.str("code")
	case "run":
	default:
		tag, text = "execute_"+action, args.str("path")+args.str("url")+args.str("browser_actions")
	}
	if text == "" {
		return args.str("thought")
	}
	return strings.TrimSpace(args.str("thought") + fmt.Sprintf("\n<%s>\n%s\n</%s>", tag, text, tag))
}
