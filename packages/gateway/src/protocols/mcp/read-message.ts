import { JsonScanner, toText } from "../../messages/json/index.ts";

/**
 * A message of JSON-RPC 2.0, with the values that this server uses. Arguments and ids are parts of the text as sent, so
 * that no number passes through a double.
 */
export interface McpMessage {
  /** The JSON text of the id; `undefined` for a notification. */
  readonly id: string | undefined;
  /** `undefined` for a response. */
  readonly method: string | undefined;
  /** The name of a tool. */
  readonly name: string | undefined;
  /** The JSON text of the arguments of a tool. */
  readonly arguments: string;
  readonly params: Members;
  readonly meta: Members;
  /** Why the message is not valid; `undefined` if it is. */
  readonly problem: string | undefined;
}

/** The JSON texts of the members of an object, by name. */
type Members = ReadonlyMap<string, string>;

/** The most characters of an id or a progress token, which are repeated in responses. 256: a UUID has 36. */
const idLengthMax = 256;

/** @throws FieldProblem, or a ConnectError, if the body is not strict JSON: see `readJson` */
export function readMcpMessage(body: Uint8Array): McpMessage {
  const text = toText(body);
  // The members of an array, a batch, are not read.
  const message = new JsonScanner(text).peek() === "array" ? new Map<string, string>() : membersOf(text);
  const params = objectMembers(message.get("params"));
  const [id, method, args] = [message.get("id"), message.get("method"), params.get("arguments") ?? "null"];
  const problems = [
    [stringOf(message.get("jsonrpc")) !== "2.0", 'the message must be one object with "jsonrpc": "2.0"'],
    [id !== undefined && !isId(id), '"id" must be a string or an integer of at most 256 characters'],
    [method !== undefined && stringOf(method) === undefined, '"method" must be a string'],
    [!args.startsWith("{") && args !== "null", '"arguments" must be an object'],
  ] as const;
  return {
    id: id !== undefined && isId(id) ? id : undefined,
    method: stringOf(method),
    name: stringOf(params.get("name")),
    // Some clients send null for a tool without parameters.
    arguments: args === "null" ? "{}" : args,
    params,
    meta: objectMembers(params.get("_meta")),
    problem: problems.find(([isWrong]) => isWrong)?.[1],
  };
}

/** Returns the members of a JSON object. @throws FieldProblem for any other text */
export function membersOf(text: string): Members {
  const members = new Map<string, string>();
  const scanner = new JsonScanner(text);
  scanner.readObject((name) => {
    const start = scanner.mark().at;
    scanner.skipValue();
    members.set(name, text.slice(start, scanner.mark().at).trim());
  });
  scanner.finish();
  return members;
}

function objectMembers(text: string | undefined): Members {
  return text?.startsWith("{") === true ? membersOf(text) : new Map();
}

/** Returns the value of a JSON text if it is a string. */
export function stringOf(text: string | undefined): string | undefined {
  return text?.startsWith('"') === true ? String(JSON.parse(text)) : undefined;
}

/** Returns whether a JSON text is a valid id or progress token. */
export function isId(text: string): boolean {
  return text.length <= idLengthMax && (text.startsWith('"') || /^-?[0-9]+$/.test(text));
}
