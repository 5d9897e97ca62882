#!/usr/bin/env node
const words = process.argv.slice(2);

/** Maximum time until the process exits after a server has stopped, in milliseconds. */
const exitTimeoutMs = 1_000;

const isDemo = words[0] === "serve" && words.includes("--demo");

// Only `serve` without `--demo` queues SIGHUP. Other commands exit on SIGHUP, such as when their terminal closes.
const onHangup = words[0] === "serve" && !isDemo ? queueHangups() : () => undefined;

void run();

// Uses a function instead of top-level await, because the command is published as CommonJS.
async function run(): Promise<void> {
  // Imports all other modules after this check, because an older Node cannot parse the modules.
  const { isSupportedNode } = await import("./is-supported-node.ts");
  if (!isSupportedNode(process.versions.node)) {
    console.error(
      `plantstore: Node.js must be 24.15 or newer (for Node.js 25: 25.9 or newer), got ${process.versions.node}`,
    );
    process.exit(1);
  }
  const { cacheCompiledCode } = await import("./compile-cache.ts");
  cacheCompiledCode();
  const { preloadStorage } = await import("../server/preload-storage.ts");
  preloadStorage(words, process.env);
  const { processTerminal } = await import("./process-terminal.ts");
  const { runCommandLine } = await import("./run-command-line.ts");
  process.exitCode = await runCommandLine(words, processTerminal(onHangup, isDemo));
  // Without the timer, a log pipe without a reader or a hung collector would keep a server's process alive.
  if (words[0] === "serve") setTimeout(() => process.exit(), exitTimeoutMs).unref();
}

/**
 * Queues SIGHUP until the returned function gets a callback. Without a listener, SIGHUP would terminate the process.
 * The function is in this file, because loading another file delays the listener.
 */
function queueHangups(): (reload: () => void) => void {
  let isQueued = false;
  let current = (): void => void (isQueued = true);
  process.on("SIGHUP", () => current());
  return (reload) => {
    current = reload;
    if (isQueued) reload();
    isQueued = false;
  };
}
