import type { DescMethod } from "@bufbuild/protobuf";
import { withTruncatedInput } from "@protoport/gateway/openapi-checks";
import { createNameFilter, selectorOf, unmatchedPatterns } from "@protoport/gateway/rest";

/** The tools for AI agents that `--mcp` selects. RPCs are named `package.Service.Method`. */
export interface CheckedTools {
  /** The tool names, by RPC. */
  readonly names: ReadonlyMap<string, string>;
  /** The selected RPCs that are not tools, because the client sends a stream. */
  readonly clientStreams: readonly string[];
  /** The RPCs whose tools have an input schema that does not list all fields, because the request is too large. */
  readonly truncated: readonly string[];
  /** The selectors that match no RPC. */
  readonly unmatched: readonly string[];
}

/** Returns the tools for the RPCs that the selectors match. */
export async function checkTools(selectors: readonly string[], methods: readonly DescMethod[]): Promise<CheckedTools> {
  // The MCP package is imported dynamically, as in the gateway.
  const { createMcp } = await import("@protoport/gateway/mcp");
  const tools = createMcp({ tools: selectors }).toolNamesOf(methods);
  const names = new Map([...tools].map(([method, name]) => [selectorOf(method), name]));
  const isSelected = createNameFilter(selectors);
  const selected = methods.map(selectorOf).filter((rpc) => isSelected?.(rpc) === true);
  return {
    names,
    clientStreams: selected.filter((rpc) => !names.has(rpc)),
    truncated: withTruncatedInput([...tools.keys()]).map(selectorOf),
    unmatched: unmatchedPatterns(selectors, methods.map(selectorOf)),
  };
}
