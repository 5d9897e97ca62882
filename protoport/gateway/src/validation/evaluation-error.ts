import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Validator } from "@bufbuild/protovalidate";
import { problem } from "../protobuf/index.ts";
import { toShortLine } from "../http/index.ts";
import { toFault } from "../serve/index.ts";
import type { Rules } from "./rules.ts";
import { sampleMessages } from "./sample-message.ts";

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
const failuresMax = 64;

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
    if (this.#reported.has(failure) || this.#reported.size >= failuresMax) return false;
    this.#reported.add(failure);
    return true;
  }
}
