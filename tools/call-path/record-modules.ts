// Preloaded with `--import`: instruments each function of the gateway to report its module when it is called.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";
import { childrenOf, isNode, isType, type Node } from "../mutants/syntax.ts";

declare global {
  /** Called with the module of each function that is called, while a call is recorded. */
  var moduleEntered: ((module: string) => void) | undefined;
}

/** Folders of the gateway that belong to one module. Each other folder is a separate module. */
const moduleOfFolder: Readonly<Record<string, string>> = {
  "create-gateway.ts": "serve",
  exchange: "engine",
  listen: "engine",
  protocols: "protocol",
};

const packages = join(import.meta.dirname, "../../packages");

/** Returns the module of a file of the gateway or of the engine. */
function moduleOf(file: string): string | undefined {
  const [name, , folder = ""] = relative(packages, file).split("/");
  if (name === "http-engine") return "engine";
  return name === "gateway" ? (moduleOfFolder[folder] ?? folder) : undefined;
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
