import type { HarmlessFaults } from "./harmless-fault.ts";

/** Harmless faults in other rooms, or in any room. */
export const harmlessElsewhere: readonly HarmlessFaults[] = [
  {
    file: "src/cli/serve.ts",
    line: "if (process.stderr.writableLength > 0)",
    fault: "process.stderr.writableLength > 0 → true",
    why: "to exit at once where nothing waits to be written loses nothing",
  },
  {
    file: "src/operations/health-service.ts",
    line: 'signal.addEventListener("abort", () => leave(watcher), { once: true });',
    fault: "true → false",
    why: "a signal aborts once",
  },
  {
    line: "question satisfies never;",
    why: "the compiler looks at it, and nothing happens when it runs",
  },
];
