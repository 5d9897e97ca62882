import { JsonScanner } from "../protobuf/index.ts";
import { type JsonMembers, jsonRpcError } from "./json-rpc.ts";

/** The members of the three objects in a message. If an object is missing, its map is empty. */
export interface MessageMembers {
  readonly message: JsonMembers;
  readonly params: JsonMembers;
  readonly meta: JsonMembers;
}

/** Maximum characters in a message outside its tool's arguments, which take a few milliseconds to read. */
export const envelopeLengthMax: number = 64 * 1024;

/** The objects on the path to `_meta`, by name. */
const path = ["params", "_meta"];

/**
 * Reads a JSON-RPC message's members strictly, except that a tool's arguments may have duplicate keys. The tool's
 * message reader reads the arguments again, and refuses duplicate keys.
 *
 * @throws FieldProblem if the text is not a JSON object, or ConnectError above {@link envelopeLengthMax}
 */
export function readEnvelope(text: string): MessageMembers {
  const message = new Map<string, string>();
  const params = new Map<string, string>();
  const meta = new Map<string, string>();
  const levels = [message, params, meta];
  const scanner = new JsonScanner(text);
  let argumentsLength = 0;
  const checkLength = (): void => {
    if (scanner.at - argumentsLength > envelopeLengthMax) throw tooLongError();
  };
  const readLevel = (level: number): void =>
    scanner.readObject((name) => {
      const kind = scanner.peek();
      const start = scanner.mark();
      if (kind === "object" && name === path[level]) readLevel(level + 1);
      else {
        scanner.skipSyntax();
        if (level === 1 && name === "arguments") argumentsLength = scanner.at - start.at;
        else {
          // The length is checked before the strict reader runs, which takes ten times as long.
          checkLength();
          scanner.rewind(start);
          scanner.skipValue();
        }
      }
      levels[level]?.set(name, text.slice(start.at, scanner.at));
    });
  readLevel(0);
  scanner.finish();
  checkLength();
  return { message, params, meta };
}

function tooLongError(): Error {
  const message = `a message must have at most ${envelopeLengthMax} characters in addition to "arguments"`;
  return jsonRpcError("invalidRequest", message, 413);
}
