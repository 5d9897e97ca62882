import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import type { Validator } from "@bufbuild/protovalidate";
import type { ConnectError } from "@connectrpc/connect";
import { toShortLine } from "../http/index.ts";
import { problem } from "../protobuf/index.ts";
import { toFault } from "../serve/index.ts";
import type { Rules } from "./rules.ts";

/** Matches CEL errors for unknown names and wrong types. protovalidate finds them only when it evaluates a rule. */
const typeErrors =
  /^(?:field not found|found no matching overload|unbound function|unresolved attribute|type mismatch|unsupported key type)|outputs \w+, wanted/;

/** Matches errors for values without a fixed type, such as an unset wrapper or a `google.protobuf.Any`. */
const dynamicValues = /null_type|google\.protobuf\./;

/**
 * Returns the type errors in CEL expressions, each with its message type. Each rule is evaluated on an empty message
 * and on one with all fields set. Errors that depend on the message, such as a division by zero, are ignored.
 *
 * @param rulesOfInputs - the rules for each input type. A type in several inputs is evaluated once
 */
export function findTypeErrors(
  validator: Pick<Validator, "validate">,
  rulesOfInputs: Iterable<Pick<Rules, "typesWithRules">>,
  expressions: ReadonlyMap<string, string>,
): readonly string[] {
  const owners = new Map<string, string>();
  // The innermost types come first, because the error of a nested message also occurs in the enclosing message.
  const types = [...rulesOfInputs].flatMap(({ typesWithRules }) => [...typesWithRules].toReversed());
  for (const type of new Set(types)) {
    for (const message of sampleMessages(type, expressions.keys())) {
      const { kind, error } = validator.validate(type, message);
      if (kind !== "error" || !typeErrors.test(error.message) || dynamicValues.test(error.message)) continue;
      if (!owners.has(error.message)) owners.set(error.message, type.typeName);
    }
  }
  return [...owners].map(([text, owner]) => `${owner}: ${text}`);
}

/** Time in milliseconds after which a rule's failure is reported again. */
const repeatMs = 60_000;
/** Maximum failures reported within {@link repeatMs}, because one rule's errors may quote different values. */
const maxKeptFailures = 64;

/** Remembers rules with a failed evaluation, so that a gateway reports each failure to `onFault` once a minute. */
export class FailedRules {
  readonly #reported = new Set<string>();
  #beganMs = Number.NEGATIVE_INFINITY;

  /** Returns the error for a message on which a rule cannot be evaluated, for example because it divides by zero. */
  errorFor(type: DescMessage, cause: Error): ConnectError {
    const text = toShortLine(cause.message);
    const error = problem("ERR_RULES_VIOLATED", `a validation rule cannot be evaluated: ${text}`, { cause });
    if (!this.#isDue(`${type.typeName}: ${text}`)) return error;
    return toFault(error, { errorCode: "ERR_RULES_VIOLATED", what: `cannot evaluate a rule of ${type.typeName}` });
  }

  #isDue(failure: string): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#beganMs >= repeatMs) {
      this.#beganMs = nowMs;
      this.#reported.clear();
    }
    if (this.#reported.has(failure) || this.#reported.size >= maxKeptFailures) return false;
    this.#reported.add(failure);
    return true;
  }
}

/**
 * Returns an empty message, and a message with all fields set, to find wrong names and types in expressions. Lists have
 * one element. Maps with string keys have an entry for each name or string in `expressions`, so that the expressions
 * may read any key.
 */
export function sampleMessages(type: DescMessage, expressions: Iterable<string>): readonly Message[] {
  const empty = reflect(type);
  const full = reflect(type);
  const words = wordsOf(expressions);
  for (const field of type.fields.filter(({ fieldKind }) => fieldKind === "map")) setField(empty, field, words);
  for (const member of type.members) setField(full, member.kind === "oneof" ? member.fields[0] : member, words);
  return [empty.message, full.message];
}

/** Returns the names and strings in expressions. Each name or string may be a map key. */
function wordsOf(expressions: Iterable<string>): readonly string[] {
  const found = [...expressions].flatMap((expression) => [
    ...expression.matchAll(/"(?<double>[^"\\]*)"|'(?<single>[^'\\]*)'|(?<name>[A-Za-z_]\w*)/g),
  ]);
  return ["a", ...found.map(({ groups = {} }) => groups["double"] ?? groups["single"] ?? groups["name"] ?? "")];
}

function setField(message: ReflectMessage, field: DescField | undefined, words: readonly string[]): void {
  switch (field?.fieldKind) {
    case "list":
      message.get(field).add(sampleValueOf(field));
      break;
    case "map":
      for (const key of field.mapKey === ScalarType.STRING ? words : [sampleScalarOf(field.mapKey)])
        message.get(field).set(key, sampleValueOf(field));
      break;
    case "scalar":
    case "enum":
    case "message":
      message.set(field, sampleValueOf(field));
      break;
    case undefined:
  }
}

function sampleValueOf({ scalar, enum: enumeration, message }: DescField): unknown {
  if (message !== undefined) return reflect(message, create(message));
  if (enumeration !== undefined) return (enumeration.values[1] ?? enumeration.values[0])?.number;
  return scalar === undefined ? undefined : sampleScalarOf(scalar);
}

function sampleScalarOf(scalar: ScalarType): unknown {
  switch (scalar) {
    case ScalarType.STRING:
      return "a";
    case ScalarType.BYTES:
      return new Uint8Array(1);
    case ScalarType.BOOL:
      return true;
    // A number is also accepted for 64-bit integers.
    default:
      return 1;
  }
}
