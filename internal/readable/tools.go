package readable

import (
	"slices"
	"strings"
)

// tools are the names of the tools that common agents have built in. Other names can tell
// what somebody works on.
var tools = strings.Fields(`
	Agent AskUserQuestion Bash BashOutput Edit EnterPlanMode ExitPlanMode Glob Grep KillBash KillShell LS MultiEdit NotebookEdit NotebookRead
	Read Skill SlashCommand Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoRead TodoWrite ToolSearch WebFetch WebSearch Write
	apply_patch exec exec_command local_shell read_mcp_resource shell shell_command spawn_agent update_plan view_image wait web_search write_stdin
	bash batch codesearch edit find glob grep invalid list ls multiedit patch question read skill task todoread todowrite webfetch websearch write
	glob google_web_search list_directory read_file read_many_files replace run_shell_command save_memory search_file_content web_fetch write_file
	create report_intent str_replace view
	browser execute_bash execute_ipython_cell finish str_replace_editor str_replace_based_edit_tool submit think
	ask_followup_question attempt_completion execute_command insert_content list_code_definition_names list_files new_task search_and_replace search_files
	switch_mode use_mcp_tool write_to_file
	memory_get memory_search recall
`)

// knownTool returns the name of a built-in tool, and "tool" for others.
func knownTool(name string) string {
	if slices.Contains(tools, name) {
		return name
	}
	return "tool"
}
