import type { DescMethod } from "@bufbuild/protobuf";
import { withCode, refusePromise, refuseUnknownOptions } from "../http/index.ts";
import { type Rpc, createNameFilter, selectorOf, unmatchedPatterns } from "../protocols/index.ts";
import { type McpOptions, type McpToolOptions, mcpToolOptionNames } from "./options.ts";

/** Maximum characters in a tool name that all major clients accept. */
const maxNameLength = 64;

const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

/** A tool, which calls an RPC. */
export interface Tool<AnyRpc extends NamedRpc = Rpc> {
  readonly name: string;
  readonly rpc: AnyRpc;
  readonly options: McpToolOptions;
}

type NamedRpc = Pick<Rpc, "method">;

/**
 * Returns the tools by name, in RPC order. Omits client and bidirectional streams, because a tool has one input.
 *
 * @param isIncomplete - whether a selector that matches no RPC is accepted
 * @throws TypeError if a tool option is unknown, or if the function `select` returns a promise
 * @throws Error if a selector matches no RPC, or if a tool name in the options is invalid or not unique
 */
export function selectTools<AnyRpc extends NamedRpc>(
  select: McpOptions["tools"],
  rpcs: readonly AnyRpc[],
  isIncomplete: boolean,
): ReadonlyMap<string, Tool<AnyRpc>> {
  const callable = rpcs.filter(({ method: { methodKind: kind } }) => kind === "unary" || kind === "server_streaming");
  const names = callable.map(({ method }) => selectorOf(method));
  const unmatched = typeof select === "function" || isIncomplete ? [] : unmatchedPatterns(select, names);
  if (unmatched.length > 0) {
    const problems = unmatched.map((selector) => `mcp: the selector "${selector}" matches no RPC that can be a tool`);
    throw withCode(new Error(problems.join("\n")), "ERR_OPTIONS");
  }
  const optionsOf = typeof select === "function" ? select : selectedBy(select);
  const selected = callable.flatMap((rpc): { rpc: AnyRpc; options: McpToolOptions }[] => {
    const options = refusePromise(optionsOf(rpc.method), "tools of createMcp must be synchronous");
    if (typeof options === "boolean") return options ? [{ rpc, options: {} }] : [];
    refuseUnknownOptions(options, mcpToolOptionNames, `tools of createMcp, for ${selectorOf(rpc.method)}`);
    return [{ rpc, options }];
  });
  // Names in tool options are reserved, so that no generated name is equal to one of these names.
  const given = new Set(selected.map(({ options }) => options.name));
  const tools = new Map<string, Tool<AnyRpc>>();
  for (const { rpc, options } of selected) {
    const { name = freeToolName(rpc.method, (each) => tools.has(each) || given.has(each)) } = options;
    if (!namePattern.test(name) || tools.has(name)) {
      const problem = `the name of a tool must be unique and match ${namePattern.source}, got ${JSON.stringify(name)}`;
      throw withCode(new Error(problem), "ERR_OPTIONS");
    }
    tools.set(name, { name, rpc, options });
  }
  return tools;
}

function selectedBy(selectors: readonly string[]): (method: DescMethod) => boolean {
  const isSelected = createNameFilter(selectors);
  return (method) => isSelected?.(selectorOf(method)) === true;
}

/** Names without a hash. Only the dots are replaced, and the end is not similar to a hash. */
const plainSelector = /^(?!.*\.[0-9a-f]{8}$)[A-Za-z][A-Za-z0-9.-]*$/;

/**
 * Returns a tool name, which is the RPC's full name with underscores instead of dots. The name starts with a letter, as
 * some models require. A name that is shortened, or that another RPC could have too, ends with a hash. Therefore, the
 * name does not depend on other RPCs, which may belong to another upstream.
 */
function freeToolName(method: DescMethod, isTaken: (name: string) => boolean): string {
  const selector = selectorOf(method);
  const plain = selector.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (plain.length <= maxNameLength && plainSelector.test(selector) && !isTaken(plain)) return plain;
  for (let seed = 0; ; seed += 1) {
    const suffix = `_${hash(selector, seed)}`;
    const name = `${plain.slice(-(maxNameLength - suffix.length)).replace(/^[^A-Za-z]+/, "") || "rpc"}${suffix}`;
    if (!isTaken(name)) return name;
  }
}

/** FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) in 32 bits, as 8 hexadecimal digits. */
function hash(text: string, seed: number): string {
  let value = 0x811c9dc5 ^ seed;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}
