#!/usr/bin/env node
// Runs the furl binary of the package for this platform. npm installs that package as
// an optional dependency; nothing is downloaded here.
"use strict";

const { spawn } = require("child_process");
const os = require("os");

const name = `@furlhq/furl-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "furl.exe" : "furl";

let binary;
try {
  binary = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(
    `furl: the package ${name} is not installed. Either furl has no binary for this platform, ` +
      "or npm was told to leave out optional dependencies: install again without --omit=optional."
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });

// A terminal sends Ctrl-C to both processes, other programs send signals to this one
// only. furl decides when it ends: this process waits for it.
for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => child.kill(signal));
}
process.on("SIGINT", () => {
  if (!process.stdin.isTTY) child.kill("SIGINT");
});

child.on("error", (err) => {
  console.error(`furl: run ${binary}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(signal ? 128 + os.constants.signals[signal] : code);
});
