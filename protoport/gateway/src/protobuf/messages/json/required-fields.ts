import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { isFieldSet, isMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { problem } from "../../call-errors.ts";
import { FieldProblem, type PathStep, printPath } from "./field-problem.ts";
import { asFieldValues, type FieldValues, loadField } from "./field-values.ts";
import { memoize } from "../codegen.ts";
import type { ReadContext } from "./read-context.ts";

/**
 * Checks that a message, and all messages inside it, have the fields that proto2 or an edition requires. Messages in an
 * Any are not checked again, because they were checked when they were read.
 *
 * @throws ConnectError `InvalidArgument` whose message names the field
 */
export function requireMessageFields(desc: DescMessage, message: Message): void {
  const missing = findMissingBelow(desc, message);
  if (missing !== undefined) throw problem("ERR_MESSAGE_INVALID", `${printPath(missing)}: ${missingField}`);
}

/** Returns whether a message with this type, or a message inside it, can lack a required field. */
export function hasRequiredFields(desc: DescMessage): boolean {
  return checkedFieldsOf(desc).length > 0;
}

/** Checks messages that were just read, as {@link requireMessageFields} does. @throws FieldProblem for a missing field */
export function requireFieldsRead({ path }: ReadContext, desc: DescMessage, value: unknown): void {
  const missing = findMissingBelow(desc, value);
  if (missing === undefined) return;
  path.push(...missing);
  throw new FieldProblem(missingField);
}

const missingField = "is required";

function findMissing(desc: DescMessage, fields: FieldValues): readonly PathStep[] | undefined {
  for (const field of checkedFieldsOf(desc)) {
    if (isRequiredField(field) && !(isMessage(fields) && isFieldSet(fields, field))) return [field];
    const missingInField = field.message && findMissingBelow(field.message, loadField(fields, field));
    if (missingInField !== undefined) return [field, ...missingInField];
  }
  return undefined;
}

function findMissingBelow(desc: DescMessage, value: unknown): readonly PathStep[] | undefined {
  if (value === undefined || checkedFieldsOf(desc).length === 0) return undefined;
  if (isMessage(value)) return findMissing(desc, value);
  for (const [key, element] of Object.entries(asFieldValues(value))) {
    const missingInElement = findMissing(desc, asFieldValues(element));
    if (missingInElement !== undefined) return [Array.isArray(value) ? Number(key) : key, ...missingInElement];
  }
  return undefined;
}

// Returns a type's required fields, and the message fields that may contain required fields.
const checkedFieldsOf = memoize((desc: DescMessage): readonly DescField[] =>
  desc.fields.filter(
    (field) => isRequiredField(field) || (field.message !== undefined && mayLackFields(field.message)),
  ),
);

// Caches whether a type or a nested message type has a required field, so each type is visited only once. The search is
// not recursive, because a long chain of types would overflow the stack.
const knownResults = new WeakMap<DescMessage, boolean>();

function mayLackFields(desc: DescMessage): boolean {
  const parents = new Map<DescMessage, DescMessage | undefined>([[desc, undefined]]);
  // The loop also visits the messages that it adds.
  for (const [message] of parents) {
    const isKnown = knownResults.get(message);
    if (isKnown === true || (isKnown === undefined && message.fields.some(isRequiredField))) {
      for (let each: DescMessage | undefined = message; each !== undefined; each = parents.get(each))
        knownResults.set(each, true);
      return true;
    }
    if (isKnown === false) continue;
    for (const { message: below } of message.fields) {
      if (below !== undefined && !parents.has(below)) parents.set(below, message);
    }
  }
  for (const message of parents.keys()) knownResults.set(message, false);
  return false;
}

/** Returns whether proto2 or an edition requires a field. */
export function isRequiredField(field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
}
