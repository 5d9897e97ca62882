import { createRequire } from "node:module";

/**
 * Parses YAML 1.2 with the core schema to a JSON value. Rejects ambiguous input: duplicate keys, aliases, tags that the
 * core schema does not define, a second document. Keys must be strings; `<<` is an ordinary key.
 *
 * @throws Error that starts with the line and column of the problem, both from 1
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
      throw problemAt(
        range?.[0] ?? 0,
        `*${source} is an alias, which is not supported; repeat the value or quote the string`,
      );
    },
  });
  return document.toJS();
}

// Loaded on first use, because its 73 modules take 25 ms to load and a proxy without rules does not need them.
function loadYaml(): typeof import("yaml") {
  const require = createRequire(import.meta.url);
  const yaml: typeof import("yaml") = require("yaml");
  return yaml;
}
