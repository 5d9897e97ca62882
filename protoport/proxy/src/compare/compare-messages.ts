import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import type { ChangeList } from "./change.ts";
import type { Usage } from "./usage.ts";
import { compareEnums } from "./compare-enums.ts";
import { compareVisibility, compareVisibilityOfType } from "./compare-visibility.ts";
import { fieldChecks } from "./field-checks.ts";
import { counterpartOf, hasSpecialJson, isPresenceRequired } from "./field-shape.ts";
import type { CompareRules } from "./compare-rules.ts";
import { isJsonGuaranteed } from "./json-format.ts";

/** Compares message types and their fields' types. Two types are compared once per direction. */
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
    // The callers have already compared types with special JSON by name.
    if (hasSpecialJson(before.typeName) || hasSpecialJson(now.typeName)) return;
    compareVisibilityOfType(before, now, this.#changes);
    this.#compareJsonFormats(before, now);
    for (const old of before.fields) this.#compareField(old, now, usage);
    if (usage.direction === "response") return;
    for (const field of now.fields) {
      if (counterpartOf(field, before) !== undefined) continue;
      if (isPresenceRequired(field)) this.#addRequired(field, usage);
      this.#compareRules.checkNewField(field, usage);
    }
    this.#compareRules.compareMessages(before, now, usage);
  }

  #compareField(old: DescField, now: DescMessage, usage: Usage): void {
    const field = counterpartOf(old, now);
    const subject = `${old.parent.typeName}.${old.name}`;
    if (field === undefined) {
      const unknown = `400: unknown field ${old.jsonName}, if the server does not ignore unknown fields`;
      this.#changes.add("field-removed", subject, now, {
        change: `${now.typeName} has no field ${old.name}`,
        before: `${old.jsonName} in ${usage.direction}s to ${usage.request}`,
        now: usage.direction === "request" ? unknown : "it is absent",
      });
      return;
    }
    compareVisibility(old, field, subject, this.#changes);
    for (const { rule, check } of fieldChecks) {
      const text = check(old, field, usage);
      if (text !== undefined) this.#changes.add(rule, subject, field, text);
    }
    if (usage.direction === "request") {
      if (isPresenceRequired(field) && !isPresenceRequired(old)) this.#addRequired(field, usage);
      this.#compareRules.compareFields(old, field, usage);
    } else if (isPresenceRequired(old) && !isPresenceRequired(field))
      this.#changes.add("field-optional", subject, field, {
        change: `${field.name} is not required`,
        before: `every response to ${usage.request} had ${old.jsonName}`,
        now: "clients of the old definition cannot read a response without it (gRPC)",
      });
    if (old.message && field.message) this.#pending.push([old.message, field.message, usage]);
    if (old.enum && field.enum) this.#compareEnums(old.enum, field.enum, usage);
  }

  #compareEnums(before: DescEnum, now: DescEnum, usage: Usage): void {
    if (this.#isCompared(before, now, usage)) return;
    this.#compareJsonFormats(before, now);
    compareEnums(before, now, usage, this.#changes);
  }

  #compareJsonFormats(before: DescEnum | DescMessage, now: DescEnum | DescMessage): void {
    if (!isJsonGuaranteed(before) || isJsonGuaranteed(now)) return;
    this.#changes.add("json-format-changed", before.typeName, now, {
      change: "json_format is LEGACY_BEST_EFFORT",
      before: "every implementation read and wrote the type as JSON",
      now: "some implementations do not",
    });
  }

  #addRequired(field: DescField, { request }: Usage): void {
    this.#changes.add("field-required", `${field.parent.typeName}.${field.name}`, field, {
      change: `${field.name} is required`,
      before: `${request} without ${field.jsonName}`,
      now: `400: ${field.jsonName} is missing`,
    });
  }

  #isCompared(before: DescEnum | DescMessage, now: DescEnum | DescMessage, { direction }: Usage): boolean {
    const key = `${direction} ${before.typeName} ${now.typeName}`;
    if (this.#compared.has(key)) return true;
    this.#compared.add(key);
    return false;
  }
}
