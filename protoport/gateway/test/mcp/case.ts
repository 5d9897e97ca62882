// oxfmt-ignore
import { type Field, type HttpRequest, initializedRevision, postMcp, statelessRequest, statelessRevision, toolNameOf,
  waterBedProcedure } from "../../../testing/src/index.ts";

/** The gateway's `readMaxBytes`. */
export const readMaxBytes = 512;
export const water: string = toolNameOf(waterBedProcedure);
export const supported: readonly string[] = [statelessRevision, initializedRevision, "2025-06-18"];
const resultMeta = { "io.modelcontextprotocol/serverInfo": { name: "protoport", version: "1" } };

/** A request, the response to it, and the procedure that `onResponse` sees. */
export interface Case {
  readonly name: string;
  readonly request: HttpRequest;
  /** Default 200. */
  readonly httpStatus?: number;
  /** The body's JSON, or `undefined` for an empty body. */
  readonly response: unknown;
  readonly procedure?: string;
  readonly header?: readonly Field[];
}

export function complete(members: object): object {
  return { jsonrpc: "2.0", id: 1, result: { ...members, resultType: "complete", _meta: resultMeta } };
}

export function result(members: object): object {
  return { jsonrpc: "2.0", id: 1, result: members };
}

export function failure(code: number, message: string, id?: unknown, data?: object): object {
  return { jsonrpc: "2.0", ...(id !== undefined && { id }), error: { code, message, ...(data && { data }) } };
}

export const text = (...texts: readonly string[]): object[] => texts.map((each) => ({ type: "text", text: each }));

export function call(args: unknown, header: readonly Field[] = [], _meta: object = {}): HttpRequest {
  return statelessRequest("tools/call", { name: water, arguments: args, _meta }, header);
}

/** Returns a stateless request with other header fields. */
export function withHeader(request: HttpRequest, changes: Readonly<Record<string, string | null>>): HttpRequest {
  const kept = request.header.filter(([name]) => !(name in changes));
  const added = Object.entries(changes).flatMap(([name, value]): Field[] => (value === null ? [] : [[name, value]]));
  return { ...request, header: [...kept, ...added] };
}

export const raw = (body: string): HttpRequest => postMcp(body, [["mcp-protocol-version", initializedRevision]]);

export const watered = { bed: "7", liters: 3 };
export const named: Pick<Case, "procedure"> = { procedure: waterBedProcedure };
