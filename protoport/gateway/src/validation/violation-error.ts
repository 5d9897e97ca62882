import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import type { ConnectError } from "@connectrpc/connect";
import type { Validator, Violation } from "@bufbuild/protovalidate";
import { problem } from "../protobuf/index.ts";
import { toShortLine } from "../http/index.ts";
import type { ProtocolName } from "../protocols/index.ts";
import { BadRequestSchema } from "../protobuf/gen/google/rpc/error_details_pb.ts";
import type { Protovalidate } from "./protovalidate.ts";

/** Maximum violations in error details, about 3 kB. gRPC sends details in header fields, often limited to 8 KiB. */
const violationsMax = 20;

/** Maximum characters in a listed violation's path and message. Violations of standard rules have fewer than 400. */
const violationLengthMax = 400;

/** Maximum list and map elements in a message whose violations are all collected. A violation takes 1 kB of memory. */
const elementsMax = 100;

/**
 * Whether a protocol's clients get google.rpc.BadRequest too. RPC clients get only `buf.validate.Violations`, as
 * `@connectrpc/validate` sends them.
 */
const sendsBadRequest: Readonly<Record<string, boolean>> = {
  connect: false,
  grpc: false,
  "grpc-web": false,
  mcp: true,
  rest: true,
} satisfies Record<ProtocolName, boolean>;

/** Creates the error for an invalid message. `first` holds the first violation, and `all` finds all of them. */
export function violationError(
  { violationsToProto }: Protovalidate,
  all: Validator,
  type: DescMessage,
  message: Message,
  first: readonly Violation[],
  protocolName: string,
): ConnectError {
  const found = countElements(message, elementsMax) > elementsMax ? first : all.validate(type, message).violations;
  const violations = [...(found ?? first)];
  const listed = violations.filter(isShort).slice(0, violationsMax);
  const texts = listed.map(({ field, message: text }) => ({
    field: pathToString(field),
    description: toShortLine(text),
  }));
  const [{ field, message: text } = noViolation] = violations;
  const subject = toShortLine(field.length === 0 ? type.typeName : pathToString(field));
  const more = violations.length > 1 ? ` (and ${String(violations.length - 1)} more)` : "";
  const error = problem("ERR_RULES_VIOLATED", `${subject}: ${toShortLine(text)}${more}`);
  const [value, desc] = violationsToProto(listed);
  error.details.push({ desc, value });
  if (sendsBadRequest[protocolName] !== false) {
    error.details.push({ desc: BadRequestSchema, value: create(BadRequestSchema, { fieldViolations: texts }) });
  }
  return error;
}

const noViolation: Pick<Violation, "field" | "message"> = { field: [], message: "" };

/** Returns whether a violation is short enough for the details. Paths may contain map keys from the client. */
function isShort({ field, message }: Violation): boolean {
  return pathToString(field).length + message.length <= violationLengthMax;
}

/** Counts the list and map elements in a message. Stops when the count exceeds `max`. */
function countElements(message: unknown, max: number): number {
  let count = 0;
  const pending = [message];
  while (pending.length > 0 && count <= max) {
    const value = pending.pop();
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) continue;
    const parts: readonly unknown[] = Object.values(value);
    // An object with a case is a oneof, not a map.
    if (Array.isArray(value) || !("$typeName" in value || "case" in value)) count += parts.length;
    if (count <= max) pending.push(...parts);
  }
  return count;
}
