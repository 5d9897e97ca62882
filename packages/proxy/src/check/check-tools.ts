import type { DescMethod } from "@bufbuild/protobuf";
import { createNameFilter, selectorOf, unmatchedPatterns } from "@plantstore/protocols";

/** The tools for AI agents that `--mcp` selects. RPCs are `package.Service.Method`. */
export interface CheckedTools {
  /** The tool names, by RPC. */
  readonly names: ReadonlyMap<string, string>;
  /** The selected RPCs that are not tools, because the client sends a stream. */
  readonly clientStreams: readonly string[];
  /** The RPCs whose names would be equal, so that all but the first end with a hash. */
  readonly collisions: readonly (readonly string[])[];
  /** The selectors that match no RPC. */
  readonly unmatched: readonly string[];
}

/** Returns the tools for the selected RPCs, and what prevents others. */
export async function checkTools(selectors: readonly string[], methods: readonly DescMethod[]): Promise<CheckedTools> {
  // A dynamic import, as in the gateway.
  const { createMcp } = await import("@plantstore/mcp");
  const tools = createMcp({ tools: selectors }).toolNamesOf(methods);
  const names = new Map([...tools].map(([method, name]) => [selectorOf(method), name]));
  const isSelected = createNameFilter(selectors);
  const selected = methods.map(selectorOf).filter((rpc) => isSelected?.(rpc) === true);
  const byPlainName = Map.groupBy(names.keys(), (rpc) => rpc.replaceAll(".", "_"));
  return {
    names,
    clientStreams: selected.filter((rpc) => !names.has(rpc)),
    collisions: [...byPlainName.values()].filter(({ length }) => length > 1),
    unmatched: unmatchedPatterns(selectors, methods.map(selectorOf)),
  };
}
