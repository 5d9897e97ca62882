import type { DescMethod } from "@bufbuild/protobuf";
import type { Comments, FieldRules } from "../openapi/index.ts";
import { withCode, type OptionNames, required, stringsByName } from "../http/index.ts";
import type { BodyCaller } from "../protocols/index.ts";

/** `createMcp` options. */
export interface McpOptions {
  /**
   * Selects the RPCs that are tools. Selectors are full names (`shop.v1.OrderService.GetOrder`) or prefixes with `*`
   * (`shop.v1.*`). A function returns whether an RPC is a tool, or the tool's options.
   */
  readonly tools: readonly string[] | ((method: DescMethod) => boolean | McpToolOptions);
  /** The path for all requests, without the gateway's prefix. Default `/mcp`. */
  readonly path?: string;
  /** The name and version that clients display. Defaults to `gateway`, version 1. */
  readonly serverInfo?: { readonly name: string; readonly version: string; readonly title?: string };
  /** Instructions in plain text that tell models how to use the tools. */
  readonly instructions?: string;
  /**
   * Returns whether `tools/list` contains a tool for this caller. By default, the list contains all tools. The filter
   * does not authorize calls. Authorize calls in an interceptor, or in the function that `admit` returns. With
   * `isListed`, lists are marked as private to their caller.
   */
  readonly isListed?: (method: DescMethod, caller: BodyCaller) => boolean;
  /**
   * Returns the scopes that calls to an RPC require, or `undefined` for an RPC that needs no credential. Tools list the
   * scopes in `_meta.securitySchemes`, and `admit` checks the scopes. `requiredScopesOf` from `@protoport/auth` reads
   * scopes from the definition. By default, tools list no scopes.
   */
  readonly scopesOf?: (method: DescMethod) => readonly string[] | undefined;
  /** The definition's comments, as for `createOpenApi`. Default: the comments in the descriptors. */
  readonly comments?: Comments;
  /** The validation rules for input schemas, as in the gateway's option `validation`. */
  readonly validation?: FieldRules;
  /**
   * The request fields that clients repeat as `Mcp-Param-{name}` in the header, each with this name: `{
   * "shop.v1.GetOrderRequest.region": "Region" }`. A proxy can route by the header without reading the body. The fields
   * must be strings, booleans or integers of the tool's request itself. A header without the body's value is refused.
   * Clients before revision 2026-07-28 send no such header. By default, clients repeat none.
   */
  readonly paramHeaders?: Readonly<Record<string, string>>;
  /** The limits for server stream results. */
  readonly stream?: Partial<McpStreamLimits>;
}

/** Options for a tool that replace values from its definition. */
export interface McpToolOptions {
  /**
   * The tool's name, with up to 64 ASCII letters, digits, `_` and `-`. Defaults to the RPC's full name, with `_`
   * instead of dots.
   */
  readonly name?: string;
  /** The display name. Defaults to the words in the RPC's name. */
  readonly title?: string;
  /** The tool's description. Defaults to the RPC's comment. */
  readonly description?: string;
  readonly hints?: McpToolHints;
}

/** Hints about a tool's effects. Clients use the hints to ask people before a call. */
export interface McpToolHints {
  /**
   * The tool changes nothing. Defaults to true for `NO_SIDE_EFFECTS` and for a GET or QUERY rule, without a DELETE
   * rule.
   */
  readonly readOnly?: boolean;
  /**
   * The tool may delete or overwrite data. Defaults to true for a DELETE rule. Otherwise the hint is not sent, which
   * means true.
   */
  readonly destructive?: boolean;
  /** A repeated call has no further effect. Defaults to true for `IDEMPOTENT` and for a PUT or DELETE rule. */
  readonly idempotent?: boolean;
  /** The tool reaches systems outside the service. By default, the hint is not sent, which means true. */
  readonly openWorld?: boolean;
}

/** The limits for a server stream's result. A result that exceeds a limit ends with an error. */
export interface McpStreamLimits {
  /** Maximum number of messages. Default 100. */
  readonly maxMessages: number;
  /** Maximum bytes in all messages as JSON. Default 262,144. */
  readonly maxBytes: number;
  /** The timeout in milliseconds for calls without a client timeout. Default 60,000. */
  readonly timeoutMs: number;
}

/** 100 messages and 256 KiB fit in a model's context, and clients wait for about a minute. */
export const streamDefaults: McpStreamLimits = { maxMessages: 100, maxBytes: 256 * 1024, timeoutMs: 60_000 };

/** Completes the limits with defaults. @throws TypeError for a limit that is not a positive integer */
export function streamLimitsOf(limits: Partial<McpStreamLimits> = {}): McpStreamLimits {
  const limitOf = (name: keyof McpStreamLimits): number => {
    const limit = limits[name] ?? streamDefaults[name];
    if (Number.isSafeInteger(limit) && limit > 0) return limit;
    const problem = `stream.${name} of createMcp must be a positive integer, got ${String(limit)}`;
    throw withCode(new TypeError(problem), "ERR_OPTIONS");
  };
  return { maxMessages: limitOf("maxMessages"), maxBytes: limitOf("maxBytes"), timeoutMs: limitOf("timeoutMs") };
}

/** The member names in {@link McpOptions}. */
export const mcpOptionNames: OptionNames<McpOptions> = {
  tools: required,
  path: true,
  serverInfo: { name: required, version: required, title: true },
  instructions: true,
  isListed: true,
  scopesOf: true,
  comments: true,
  validation: true,
  paramHeaders: stringsByName(),
  stream: streamDefaults,
};

/** The member names in {@link McpToolOptions}. */
export const mcpToolOptionNames: OptionNames<McpToolOptions> = {
  name: true,
  title: true,
  description: true,
  hints: { readOnly: true, destructive: true, idempotent: true, openWorld: true },
};
