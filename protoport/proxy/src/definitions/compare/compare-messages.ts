import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { ChangeList } from "./change.ts";
import { compareVisibility, compareVisibilityOfType } from "./compare-visibility.ts";

/**
 * Compares the visibility and the validation rules of message types and their fields' types. Two types are compared
 * once per direction.
 */
export class MessageComparison {
  readonly #changes: ChangeList;
  readonly #compareRules: CompareRules;
  readonly #compared = new Set<string>();
  readonly #pending: (readonly [before: DescMessage, now: DescMessage, usage: Usage])[] = [];

  constructor(changes: ChangeList, compareRules: CompareRules) {
    this.#changes = changes;
    this.#compareRules = compareRules;
  }

  /** Compares two types. Fields correspond if they have the same number, or otherwise the same name. */
  compare(before: DescMessage, now: DescMessage, usage: Usage): void {
    // Uses a list, because recursion would overflow the stack for a chain of thousands of types.
    this.#pending.push([before, now, usage]);
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) this.#comparePair(...next);
  }

  #comparePair(before: DescMessage, now: DescMessage, usage: Usage): void {
    if (this.#isCompared(before, now, usage)) return;
    compareVisibilityOfType(before, now, this.#changes);
    for (const old of before.fields) this.#compareField(old, now, usage);
    if (usage.direction === "response") return;
    for (const field of now.fields) {
      if (counterpartOf(field, before) === undefined) this.#compareRules.checkNewField(field, usage);
    }
    this.#compareRules.compareMessages(before, now, usage);
  }

  #compareField(old: DescField, now: DescMessage, usage: Usage): void {
    const field = counterpartOf(old, now);
    compareVisibility(old, field ?? { missingIn: now }, `${old.parent.typeName}.${old.name}`, this.#changes);
    if (field === undefined) return;
    if (usage.direction === "request") this.#compareRules.compareFields(old, field, usage);
    if (old.message && field.message) this.#pending.push([old.message, field.message, usage]);
    // Comparing an enum once per direction only saves time, because the list of changes has no duplicates.
    if (old.enum && field.enum && !this.#isCompared(old.enum, field.enum, usage))
      compareEnums(old.enum, field.enum, this.#changes);
  }

  #isCompared(before: DescEnum | DescMessage, now: DescEnum | DescMessage, { direction }: Usage): boolean {
    const key = `${direction} ${before.typeName} ${now.typeName}`;
    if (this.#compared.has(key)) return true;
    this.#compared.add(key);
    return false;
  }
}

/** Compares two enums. Values correspond if they have the same name, or otherwise the same number. */
function compareEnums(before: DescEnum, now: DescEnum, changes: ChangeList): void {
  compareVisibilityOfType(before, now, changes);
  for (const old of before.values) {
    const value = now.values.find(({ name }) => name === old.name) ?? now.value[old.number];
    compareVisibility(old, value ?? { missingIn: now }, `${before.typeName}.${old.name}`, changes);
  }
}

/** Compares the rules that requests must satisfy. */
export interface CompareRules {
  compareFields(old: DescField, field: DescField, usage: Usage): void;
  /** Checks the rules on a new field. */
  checkNewField(field: DescField, usage: Usage): void;
  /** Compares the rules on two messages and on their oneofs. */
  compareMessages(before: DescMessage, now: DescMessage, usage: Usage): void;
}

/** Returns the field of `type` with the same number as `field`, or otherwise the field with the same name. */
export function counterpartOf(field: DescField, type: DescMessage): DescField | undefined {
  return (
    type.fields.find(({ number }) => number === field.number) ?? type.fields.find(({ name }) => name === field.name)
  );
}

/** Returns whether a message distinguishes a default value from no value. */
export function hasPresence({ presence }: DescField): boolean {
  return presence !== FeatureSet_FieldPresence.IMPLICIT;
}

/** Where a message is used: in requests or responses, and in which request, such as `GET /v1/{id}`. */
export interface Usage {
  readonly direction: "request" | "response";
  readonly request: string;
}
