#!/usr/bin/env node
const words = process.argv.slice(2);
// Only servers handle SIGHUP. SIGHUP terminates other commands.
const exits = words.includes("--check") || words.includes("--openapi");
const isServer = (words[0] === undefined || /^(?:serve$|-)/.test(words[0])) && !exits;
const onHangup = isServer ? queueHangups() : () => undefined;

void run();

// A function instead of top-level await, so that bundlers can convert the command to CommonJS.
async function run(): Promise<void> {
  // Dynamic imports, so that SIGHUP is handled before the rest of the program is loaded.
  const { proxyCommand } = await import("./program.ts");
  const { processTerminal } = await import("./terminal.ts");
  process.exitCode = await proxyCommand(words, processTerminal(onHangup));
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
