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
import type { Usage } from "./usage.ts";
import type { OpenRules } from "./compare-services.ts";
import type { CompareRules } from "./compare-rules.ts";
import { flattenRules, narrowedRules, type RuleValues } from "./narrowed-rules.ts";

/**
 * Loads what compares the `buf.validate` rules.
 *
 * @throws Error if `@bufbuild/protovalidate`, an optional peer dependency, is not installed
 */
export async function loadRules(): Promise<OpenRules> {
  const [{ createValidator }, schemas] = await Promise.all([
    import("@bufbuild/protovalidate"),
    import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  ]);
  return (changes) => new RuleComparison(schemas, createValidator(), changes);
}

/** What compares no rules. */
export const withoutRules: OpenRules = () => ({
  ofFields: () => undefined,
  ofNewField: () => undefined,
  ofMessages: () => undefined,
});

type Schemas = Pick<
  typeof import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  "field" | "FieldRulesSchema" | "message" | "MessageRulesSchema" | "oneof" | "OneofRulesSchema"
>;

class RuleComparison implements CompareRules {
  readonly #schemas: Schemas;
  readonly #validator: Validator;
  readonly #changes: ChangeList;

  constructor(schemas: Schemas, validator: Validator, changes: ChangeList) {
    this.#schemas = schemas;
    this.#validator = validator;
    this.#changes = changes;
  }

  ofFields(old: DescField, field: DescField, { request }: Usage): void {
    const subject = `${old.parent.typeName}.${old.name}`;
    const narrowed = narrowedRules(this.#ofField(old), this.#ofField(field));
    if (narrowed.includes("required"))
      this.#changes.add("field-required", subject, field, {
        change: `a rule requires ${field.name}`,
        before: `${request} without ${old.jsonName}`,
        now: `400: ${field.jsonName} is required`,
      });
    const others = narrowed.filter((name) => name !== "required");
    this.#addNarrowed(subject, field, others, old.jsonName, request);
  }

  /** Reports a field whose rules refuse a message without it: `required`, or rules that a default value breaks. */
  ofNewField(field: DescField, { request }: Usage): void {
    const { violations = [] } = this.#validator.validate(field.parent, create(field.parent));
    const violation = violations.find(({ field: [first] }) => first === field);
    if (violation === undefined) return;
    this.#changes.add("field-required", `${field.parent.typeName}.${field.name}`, field, {
      change: `the rules of the new field ${field.name} refuse requests without it`,
      before: `${request} without ${field.jsonName}`,
      now: `400: ${field.jsonName} ${violation.message}`,
    });
  }

  ofMessages(before: DescMessage, now: DescMessage, { request }: Usage): void {
    const narrowed = narrowedRules(this.#ofMessage(before), this.#ofMessage(now));
    this.#addNarrowed(before.typeName, now, narrowed, "some values", request);
    for (const old of before.oneofs) {
      const oneof = now.oneofs.find(({ name }) => name === old.name);
      if (oneof === undefined) continue;
      const ofOneof = narrowedRules(this.#ofOneof(old), this.#ofOneof(oneof));
      this.#addNarrowed(`${before.typeName}.${old.name}`, now, ofOneof, `no field of ${old.name}`, request);
    }
  }

  #ofField(field: DescField): RuleValues {
    const { field: option, FieldRulesSchema } = this.#schemas;
    return hasOption(field, option) ? flattenRules(toJson(FieldRulesSchema, getOption(field, option))) : none;
  }

  #ofMessage(type: DescMessage): RuleValues {
    const { message: option, MessageRulesSchema } = this.#schemas;
    return hasOption(type, option) ? flattenRules(toJson(MessageRulesSchema, getOption(type, option))) : none;
  }

  #ofOneof(oneof: DescOneof): RuleValues {
    const { oneof: option, OneofRulesSchema } = this.#schemas;
    return hasOption(oneof, option) ? flattenRules(toJson(OneofRulesSchema, getOption(oneof, option))) : none;
  }

  #addNarrowed(
    subject: string,
    place: DescField | DescMessage,
    narrowed: readonly string[],
    value: string,
    request: string,
  ): void {
    if (narrowed.length === 0) return;
    this.#changes.add("rules-narrowed", subject, place, {
      change: `buf.validate is narrower: ${narrowed.join(", ")}`,
      before: `${request} with ${value} outside of the new rules`,
      now: "400, if the server validates requests",
    });
  }
}

const none: RuleValues = new Map();
