import { createRequire } from "node:module";

/**
 * Reads YAML 1.2 by its core schema, as a value of JSON. What would have two readings is refused: keys that are there
 * twice, aliases, tags that the core schema does not define, a second document. Keys are strings; `<<` is one of them.
 *
 * @throws Error that begins with the line and the column, both from 1, of what is refused
 */
export function readYaml(text: string): unknown {
  const { LineCounter, parseDocument, visit } = loadYaml();
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    schema: "core",
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    prettyErrors: false,
    lineCounter,
  });
  const problemAt = (offset: number, message: string): Error => {
    const { line, col } = lineCounter.linePos(offset);
    return new Error(`line ${line}, column ${col}: ${message}`);
  };
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw problemAt(problem.pos[0], problem.message);
  visit(document, {
    Alias(_, { range, source }) {
      throw problemAt(range?.[0] ?? 0, `*${source} is an alias; write the value again, or quote the text`);
    },
  });
  return document.toJS();
}

// Loaded with the first YAML: its 73 modules take node 25 ms, for which a proxy without rules should not wait.
function loadYaml(): typeof import("yaml") {
  const require = createRequire(import.meta.url);
  const yaml: typeof import("yaml") = require("yaml");
  return yaml;
}
