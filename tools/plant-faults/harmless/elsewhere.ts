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
    file: "src/cli/demo.ts",
    line: "const buf = import.meta.url.endsWith(",
    fault: 'import.meta.url.endsWith(".ts") → true',
    why: "true in every checkout; test:package sees what a package says",
  },
  {
    file: "src/operations/request-id.ts",
    line: "const answeredKey:",
    fault: "description:",
    why: "a name for debuggers",
  },
  {
    file: "src/server/create-plant-server.ts",
    line: "const forLog = writeCall === undefined ?",
    fault: "writeCall === undefined → false",
    why: "to remember a plant that no log asks for costs time alone",
  },
  {
    line: "question satisfies never;",
    why: "the compiler looks at it, and nothing happens when it runs",
  },
];
