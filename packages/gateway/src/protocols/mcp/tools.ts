import type { DescMethod } from "@bufbuild/protobuf";
import { withCode } from "../../errors/index.ts";
import { refusePromise, refuseUnknownOptions } from "../../options/index.ts";
import type { ProtocolParts, Rpc } from "../index.ts";
import { createNameFilter, selectorOf } from "../rest/rules/index.ts";
import { type McpOptions, type McpToolOptions, mcpToolOptionNames } from "./options.ts";
import { Tool } from "./tool.ts";

/** The longest name of a tool that all major clients accept, in characters. */
const nameLengthMax = 64;

/** The names of tools that all major clients accept. */
const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Creates the tools of a gateway, by name, in the order of their registration. Client and bidirectional streams are left
 * out, because a tool has one input.
 *
 * @throws TypeError for unknown options of a tool and for a promise; Error for a selector without an RPC, and for a given name that is not valid or not unique
 */
export function createTools(
  select: McpOptions["tools"],
  { rpcs, isIncomplete }: ProtocolParts,
): ReadonlyMap<string, Tool> {
  const callable = rpcs.filter(isCallable);
  const optionsOf = typeof select === "function" ? select : selectedBy(select, callable, isIncomplete);
  const selected = callable.flatMap((rpc) => {
    const options: boolean | McpToolOptions = refusePromise(
      optionsOf(rpc.method),
      "tools of createMcp must be synchronous",
    );
    if (typeof options === "boolean") return options ? [{ rpc, options: noOptions }] : [];
    refuseUnknownOptions(options, mcpToolOptionNames, `tools of createMcp, for ${selectorOf(rpc.method)}`);
    return [{ rpc, options }];
  });
  const byName = Map.groupBy(selected, ({ rpc, options }) => options.name ?? plainName(rpc.method));
  const tools = new Map<string, Tool>();
  for (const { rpc, options } of selected) {
    const { name } = options;
    if (name !== undefined && (!namePattern.test(name) || tools.has(name))) {
      const problem = `the name of a tool must be unique and match ${namePattern.source}, got ${JSON.stringify(name)}`;
      throw withCode(new Error(problem), "ERR_OPTIONS");
    }
    const unique = name ?? freeName(rpc.method, (free) => byName.get(free)?.length === 1, tools);
    tools.set(unique, new Tool(unique, rpc, options));
  }
  return tools;
}

const noOptions: McpToolOptions = {};

function isCallable(rpc: Rpc): boolean {
  return rpc.kind === "unary" || rpc.method.methodKind === "server_streaming";
}

function selectedBy(
  selectors: readonly string[],
  rpcs: readonly Rpc[],
  isIncomplete: boolean,
): (method: DescMethod) => boolean {
  const names = rpcs.map(({ method }) => selectorOf(method));
  const unknown = selectors.filter((selector) => {
    const matches = createNameFilter([selector]);
    return matches === undefined || !names.some(matches);
  });
  if (unknown.length > 0 && !isIncomplete) {
    const problems = unknown.map((selector) => `mcp: the selector "${selector}" matches no RPC that can be a tool`);
    throw withCode(new Error(problems.join("\n")), "ERR_OPTIONS");
  }
  const isSelected = createNameFilter(selectors);
  return (method) => isSelected?.(selectorOf(method)) === true;
}

function plainName(method: DescMethod): string {
  return selectorOf(method).replaceAll(/[^A-Za-z0-9_-]/g, "_");
}

/**
 * Returns the name of a tool, which depends only on the full name of its RPC: with underscores instead of dots. It starts
 * with a letter, as some models require. A name that is cut, or that two RPCs would have, ends with a hash of the full
 * name.
 */
function freeName(method: DescMethod, isUnique: (name: string) => boolean, taken: ReadonlyMap<string, Tool>): string {
  const plain = plainName(method);
  if (plain.length <= nameLengthMax && isUnique(plain) && /^[A-Za-z]/.test(plain)) return plain;
  for (let seed = 0; ; seed += 1) {
    const suffix = `_${hash(selectorOf(method), seed)}`;
    const name = `${plain.slice(-(nameLengthMax - suffix.length)).replace(/^[^A-Za-z]+/, "") || "rpc"}${suffix}`;
    if (!taken.has(name)) return name;
  }
}

/** FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) in 32 bits, as 8 hexadecimal digits. */
function hash(text: string, seed: number): string {
  let value = 0x811c9dc5 ^ seed;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}
