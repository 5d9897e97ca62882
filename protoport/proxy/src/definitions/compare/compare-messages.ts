import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import type { ChangeList } from "./change.ts";
import type { Usage } from "./usage.ts";
import { compareEnums } from "./compare-enums.ts";
import { compareVisibility, compareVisibilityOfType } from "./compare-visibility.ts";
import { counterpartOf } from "./field-shape.ts";
import type { CompareRules } from "./compare-rules.ts";

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
