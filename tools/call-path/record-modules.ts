// A module that is preloaded with `--import`. Instruments each function in the gateway, the HTTP engine and the proxy.
// An instrumented function reports its module when it is called.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";
import { moduleNames } from "../../protoport/testing/src/source-tree.ts";
import { childrenOf, isNode, isType, type Node } from "../../protoport/testing/src/syntax.ts";
import { allowedImports } from "../../protoport/test/support/allowed-imports.ts";

declare global {
  /** Called with each called function's module, while a call is recorded. */
  var moduleEntered: ((module: string) => void) | undefined;
}

const packages = join(import.meta.dirname, "../../protoport");

/** Maps the module folders of these packages to their names. The longest path comes first. */
const modules: ReadonlyMap<string, string> = new Map(
  moduleNames(allowedImports)
    .filter((name) => /^(?:gateway|proxy)(?:\/|$)/.test(name) && !/\/gen$|\.ts$/.test(name))
    .map((name) => `${name}/`)
    .map((module) => [join(packages, module.replace("/", "/src/")), module]),
);

/** Returns a file's module, which is the innermost folder in {@link modules}. */
function moduleOf(file: string): string | undefined {
  return [...modules].find(([folder]) => file.startsWith(folder))?.[1];
}

registerHooks({
  load(url, context, nextLoad) {
    const module = url.startsWith("file:") && url.endsWith(".ts") ? moduleOf(fileURLToPath(url)) : undefined;
    if (module === undefined) return nextLoad(url, context);
    const source = instrument(readFileSync(fileURLToPath(url), "utf8"), module);
    return { format: "module-typescript", source, shortCircuit: true };
  },
});

/** Returns a TypeScript source in which each function first calls `globalThis.moduleEntered`. */
function instrument(source: string, module: string): string {
  const report = `globalThis.moduleEntered?.(${JSON.stringify(module)})`;
  const insertions: { readonly at: number; readonly code: string }[] = [];
  const visit = (node: Node): void => {
    if (isType(node)) return;
    const { body } = node;
    if (/Function/.test(node.type) && isNode(body)) {
      const isExpression = node.type === "ArrowFunctionExpression" && body.type !== "BlockStatement";
      if (isExpression) insertions.push({ at: body.start, code: `(${report}, ` }, { at: body.end, code: ")" });
      else insertions.push({ at: body.start + 1, code: `${report};` });
    }
    childrenOf(node).forEach(visit);
  };
  const program: unknown = parseAst(source, { lang: "ts" });
  if (isNode(program)) visit(program);
  return insertions
    .toSorted((a, b) => b.at - a.at)
    .reduce((text, { at, code }) => text.slice(0, at) + code + text.slice(at), source);
}
