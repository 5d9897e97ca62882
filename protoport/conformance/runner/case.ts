import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** The optional server features that cases can require. `--without` skips the cases that require a feature. */
// oxfmt-ignore
export const needs = [
  "verbs", "masks", "body_fields", "response_body", "custom", "streams", "client_streams", "httpbody",
] as const;

/** The name of a feature that a case can require. */
export type Need = (typeof needs)[number];

/** One header field, by its name in lower case. */
export type Field = readonly [name: string, value: string];

/** A request with at most one body, which is `json`, `text` or `base64`. `json` also sets the content type. */
export interface CaseRequest {
  readonly method: string;
  /** The request target, which is sent unchanged. */
  readonly target: string;
  readonly header?: readonly Field[];
  readonly json?: string;
  readonly text?: string;
  readonly base64?: string;
  /**
   * Sends the body in chunks with this many bytes, without announcing a length. Over HTTP/2, the body is sent as usual.
   */
  readonly chunkBytes?: number;
}

/** The response that a server must send to a request. */
export type Expectation =
  /** The status is 200, and the backend was called with this RPC and this message, as ProtoJSON. */
  | { readonly rpc: string; readonly message: Json }
  /** The backend was not called, and `refused` contains the status or its class, such as `4xx`. */
  | { readonly refused: readonly string[]; readonly header?: Readonly<Record<string, string>> }
  /**
   * The response has this status, these header fields, and this body. `has` lists only some members of a JSON object in
   * the body. `base64` is the body's bytes, and `empty` means no body.
   */
  | {
      readonly status: string;
      readonly header?: Readonly<Record<string, string>>;
      readonly json?: Json;
      readonly has?: Readonly<Record<string, Json>>;
      readonly base64?: string;
      readonly empty?: true;
    }
  /**
   * The status is 200, and the response streams these messages, in any common format. `error` means that an error ends
   * the stream.
   */
  | { readonly items: readonly Json[]; readonly error?: true };

/** A test case: a request, the expected response, and the standard that requires this response. */
export interface Case {
  readonly id: string;
  /** The name of the case's file. */
  readonly group: string;
  /** A short description. */
  readonly title: string;
  /**
   * `must` if the standard allows only `expect` and the alternatives in `or`. `should` if the standard or a related
   * text recommends `expect`.
   */
  readonly level: "must" | "should";
  /** The standard and its section. */
  readonly sentence: string;
  readonly needs: readonly Need[];
  readonly request: CaseRequest;
  readonly expect: Expectation;
  /** Other responses that pass, because the standard also allows them. */
  readonly or: readonly Expectation[];
}

/** The case folder in this package. */
export const casesFolder: string = join(import.meta.dirname, "..", "cases");

/**
 * Reads a folder's cases. Each group of cases has a JSON Lines file. Errors contain the file name and the line number.
 */
export function readCases(folder: string = casesFolder): readonly Case[] {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .toSorted();
  return files.flatMap((name) =>
    readFileSync(join(folder, name), "utf8")
      .split("\n")
      .flatMap((line, at) =>
        line === "" ? [] : [parseCase(line, name.slice(0, -".jsonl".length), `${name}:${at + 1}`)],
      ),
  );
}

const members = new Set(["id", "title", "level", "sentence", "needs", "request", "expect", "or"]);

/** Parses a line of a case file. If the line is not a case, throws an error that starts with `where`. */
export function parseCase(line: string, group: string, where: string): Case {
  const value: unknown = parse(line, where);
  if (!isRecord(value)) throw new Error(`${where}: must be an object`);
  const unknown = Object.keys(value).filter((key) => !members.has(key));
  if (unknown.length > 0) throw new Error(`${where}: unknown member ${unknown.join(", ")}`);
  const { id, title, level, sentence, needs: needed = [], request, expect, or = [] } = value;
  for (const [name, text] of Object.entries({ id, title, sentence })) {
    if (typeof text !== "string" || text === "") throw new Error(`${where}: ${name} is missing`);
  }
  if (level !== "must" && level !== "should")
    throw new Error(`${where}: level must be "must" or "should", got ${JSON.stringify(level)}`);
  if (!Array.isArray(needed) || !needed.every(isNeed))
    throw new Error(`${where}: needs must be an array of ${needs.join(", ")}`);
  if (!isRequest(request)) throw new Error(`${where}: request must have a method and a target, and at most one body`);
  if (!isExpectation(expect)) throw new Error(`${where}: expect must be an expectation`);
  if (!Array.isArray(or) || !or.every(isExpectation)) throw new Error(`${where}: or must be an array of expectations`);
  return {
    id: String(id),
    group,
    title: String(title),
    level,
    sentence: String(sentence),
    needs: needed,
    request,
    expect,
    or,
  };
}

function parse(line: string, where: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new Error(`${where}: must be JSON`, { cause: error });
  }
}

/** Returns whether a value is an object, but not an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNeed(value: unknown): value is Need {
  return needs.some((need) => need === value);
}

function isRequest(value: unknown): value is CaseRequest {
  if (!isRecord(value) || typeof value["method"] !== "string" || typeof value["target"] !== "string") return false;
  const bodies = [value["json"], value["text"], value["base64"]].filter((body) => body !== undefined);
  const { header = [], chunkBytes = 1 } = value;
  const isHeader = Array.isArray(header) && header.every((field) => Array.isArray(field) && field.length === 2);
  return bodies.length < 2 && bodies.every((body) => typeof body === "string") && isHeader && Number(chunkBytes) > 0;
}

function isExpectation(value: unknown): value is Expectation {
  if (!isRecord(value)) return false;
  if ("rpc" in value) return typeof value["rpc"] === "string" && value["message"] !== undefined;
  if ("refused" in value) return Array.isArray(value["refused"]) && value["refused"].every(isStatus);
  return "items" in value ? Array.isArray(value["items"]) : isStatus(value["status"]);
}

function isStatus(value: unknown): boolean {
  return typeof value === "string" && /^[2-5](?:\d\d|xx)$/.test(value);
}
