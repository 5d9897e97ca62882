import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  hasOption,
  toJson,
} from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import type { ChangeList } from "./change.ts";
import { type CompareRules, counterpartOf, hasPresence, type Usage } from "./compare-messages.ts";
import type { OpenRules } from "./compare-services.ts";
import { flattenRules, narrowedRules, type RuleValues } from "./narrowed-rules.ts";

/** Loads the comparison for `buf.validate` rules. @throws Error if `@bufbuild/protovalidate` is not installed */
export async function loadRules(): Promise<OpenRules> {
  const [{ createValidator }, schemas] = await Promise.all([
    import("@bufbuild/protovalidate"),
    import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  ]);
  return (changes) => new RuleComparison(schemas, createValidator(), changes);
}

/** A comparison that ignores all rules. */
export const withoutRules: OpenRules = () => ({
  compareFields: () => undefined,
  checkNewField: () => undefined,
  compareMessages: () => undefined,
});

type RuleSchemas = Pick<
  typeof import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  "field" | "FieldRulesSchema" | "message" | "MessageRulesSchema" | "oneof"
>;

class RuleComparison implements CompareRules {
  readonly #schemas: RuleSchemas;
  readonly #validator: Validator;
  readonly #changes: ChangeList;

  constructor(schemas: RuleSchemas, validator: Validator, changes: ChangeList) {
    this.#schemas = schemas;
    this.#validator = validator;
    this.#changes = changes;
  }

  compareFields(old: DescField, field: DescField, { request }: Usage): void {
    const subject = `${old.parent.typeName}.${old.name}`;
    const narrowed = narrowedRules(this.#ofField(old), this.#ofField(field));
    if (narrowed.includes("required"))
      this.#changes.add("field-required", subject, field, {
        change: `a rule requires ${field.name}`,
        before: `${request} without ${old.jsonName}`,
        now: `400: ${field.jsonName} is required`,
      });
    // Rules also apply to the default value of a field that has lost its presence.
    else if (hasPresence(old) && !hasPresence(field) && !this.#isRequired(old))
      this.#refuseWithout(field, subject, `the rules of ${field.name} refuse requests without it`, request);
    const others = narrowed.filter((name) => name !== "required");
    this.#addNarrowed(subject, field, others, old.jsonName, request);
  }

  /** Reports a new field if `required`, or a rule that the default violates, refuses messages without the field. */
  checkNewField(field: DescField, { request }: Usage): void {
    const subject = `${field.parent.typeName}.${field.name}`;
    this.#refuseWithout(field, subject, `the rules of the new field ${field.name} refuse requests without it`, request);
  }

  #refuseWithout(field: DescField, subject: string, change: string, request: string): void {
    const { violations = [] } = this.#validator.validate(field.parent, create(field.parent));
    const violation = violations.find(({ field: [first] }) => first === field);
    if (violation === undefined) return;
    this.#changes.add("field-required", subject, field, {
      change,
      before: `${request} without ${field.jsonName}`,
      now: `400: ${field.jsonName} ${violation.message}`,
    });
  }

  compareMessages(before: DescMessage, now: DescMessage, { request }: Usage): void {
    const narrowed = narrowedRules(this.#ofMessage(before), this.#ofMessage(now));
    this.#addNarrowed(before.typeName, now, narrowed, "some values", request);
    // The field groups from which old clients had to set one field in every request.
    const required = [
      ...before.oneofs.filter((oneof) => this.#isRequired(oneof)).map(({ fields }) => fields),
      ...before.fields.filter((field) => this.#isRequired(field)).map((field) => [field]),
    ].map((fields) => fields.map((field) => counterpartOf(field, now)));
    for (const oneof of now.oneofs.filter((each) => this.#isRequired(each))) {
      if (required.some((fields) => fields.every((field) => field?.oneof === oneof))) continue;
      this.#changes.add("rules-narrowed", `${before.typeName}.${oneof.name}`, now, {
        change: `a rule requires a field of ${oneof.name}`,
        before: `${request} without ${oneof.fields.map(({ jsonName }) => jsonName).join(", ")}`,
        now: "400, if the server validates requests",
      });
    }
  }

  /** Returns whether `buf.validate` refuses messages without a field, or without all fields in a oneof. */
  #isRequired(part: DescField | DescOneof): boolean {
    const { field, oneof } = this.#schemas;
    return part.kind === "oneof" ? getOption(part, oneof).required : getOption(part, field).required;
  }

  #ofField(field: DescField): RuleValues {
    const { field: option, FieldRulesSchema } = this.#schemas;
    return hasOption(field, option) ? flattenRules(toJson(FieldRulesSchema, getOption(field, option))) : none;
  }

  #ofMessage(type: DescMessage): RuleValues {
    const { message: option, MessageRulesSchema } = this.#schemas;
    return hasOption(type, option) ? flattenRules(toJson(MessageRulesSchema, getOption(type, option))) : none;
  }

  #addNarrowed(
    subject: string,
    element: DescField | DescMessage,
    narrowed: readonly string[],
    value: string,
    request: string,
  ): void {
    if (narrowed.length === 0) return;
    this.#changes.add("rules-narrowed", subject, element, {
      change: `buf.validate is narrower: ${narrowed.join(", ")}`,
      before: `${request} with ${value} outside of the new rules`,
      now: "400, if the server validates requests",
    });
  }
}

const none: RuleValues = new Map();
