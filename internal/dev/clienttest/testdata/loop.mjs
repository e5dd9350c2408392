// What the scripts of all SDKs share: the work folder's one tool, and a history
// that outlives the process.
import { execSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

export const env = process.env;
export const stream = env.STREAM === "1";
export const schema = {
  type: "object",
  properties: { command: { type: "string", description: "What to run." } },
  required: ["command"],
};

// run is the tool: it runs a command in the shell.
export function run({ command }) {
  return execSync(command, { encoding: "utf8" });
}

// history is what an earlier process has left, with the new task at its end.
export function history() {
  const list = existsSync(env.HISTORY) ? JSON.parse(readFileSync(env.HISTORY, "utf8")) : [];
  list.push({ role: "user", content: env.TASK });
  return list;
}

export function keep(list) {
  writeFileSync(env.HISTORY, JSON.stringify(list));
}
