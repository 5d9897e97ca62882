import {
  create,
  type DescField,
  type DescFile,
  type DescMessage,
  fromJson,
  getOption,
  hasOption,
  type JsonObject,
  type Registry,
} from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import type { FieldRules as ProtoFieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { createReachableRegistry, memoize } from "../protobuf/index.ts";
import type { FieldKeywords, FieldRules } from "../openapi/index.ts";
import type { Protovalidate } from "./protovalidate.ts";
import { findRules } from "./rules.ts";
import { exampleOf } from "./rule-example.ts";
import { keywordsOf } from "./rule-keywords.ts";

/**
 * Describes `buf.validate` field rules for documents. Required fields are found by validating an empty message.
 * Untrusted rules, even in responses, are not evaluated, because patterns and CEL could take long or fill the memory.
 */
export class DescribedRules implements FieldRules {
  /** Returns a field's decoded rules, cached because `getOption` decodes the option on each call. */
  readonly #rulesOf: (field: DescField) => ProtoFieldRules | false;
  readonly #rulesType: DescMessage;
  readonly #preparedOf: (file: DescFile) => { readonly registry: Registry; readonly validator: Validator };
  readonly #requiredIn: (type: DescMessage) => ReadonlySet<DescField>;
  readonly #hasRules: (type: DescMessage) => boolean;
  readonly #isUntrusted: boolean;

  constructor(protovalidate: Protovalidate, isUntrusted: boolean) {
    const { createValidator, field: fieldRules, FieldRulesSchema } = protovalidate;
    this.#isUntrusted = isUntrusted;
    this.#hasRules = memoize((type) => findRules([type], protovalidate).owners > 0);
    this.#rulesType = FieldRulesSchema;
    this.#rulesOf = memoize((field) => (hasOption(field, fieldRules) ? getOption(field, fieldRules) : false));
    this.#preparedOf = memoize((file) => {
      const registry = createReachableRegistry([{ file }]);
      return { registry, validator: createValidator({ registry }) };
    });
    this.#requiredIn = memoize((type) => {
      if (isUntrusted) return new Set(type.fields.filter((each) => this.#isMarkedRequired(each)));
      // A string that must not be empty is also required, because a string that is not sent is empty.
      const { violations = [] } = this.#preparedOf(type.file).validator.validate(type, create(type));
      const violated = new Set(violations.map(({ field: [first] }) => first));
      return new Set(type.fields.filter((each) => violated.has(each)));
    });
  }

  keywordsOf(field: DescField): FieldKeywords | undefined {
    const rules = this.#rulesOf(field);
    return rules === false ? undefined : keywordsOf(field, rules, this.#rulesType);
  }

  isRequired(field: DescField): boolean {
    if (field.oneof !== undefined && field.oneof.fields.length > 1) return false;
    return this.#requiredIn(field.parent).has(field);
  }

  #isMarkedRequired(field: DescField): boolean {
    const rules = this.#rulesOf(field);
    return rules !== false && rules.required;
  }

  exampleOf(field: DescField): readonly (string | number | boolean)[] | undefined {
    const rules = this.#rulesOf(field);
    if (rules === false) return undefined;
    const { value, element } = this.keywordsOf(field) ?? {};
    const keywords = field.fieldKind === "list" || field.fieldKind === "map" ? element : value;
    // No example can be derived from a CEL expression.
    if (rules.cel.length + rules.celExpression.length > 0 && keywords?.["examples"] === undefined) return [];
    if (keywords === undefined || Object.keys(keywords).length === 0) return undefined;
    if (this.#isUntrusted && keywords["pattern"] !== undefined) return [];
    const example = exampleOf(keywords);
    return example === undefined ? [] : [example];
  }

  accepts(type: DescMessage, json: JsonObject): boolean {
    if (this.#isUntrusted) return !this.#hasRules(type);
    const { registry, validator } = this.#preparedOf(type.file);
    try {
      return validator.validate(type, fromJson(type, json, { registry })).kind === "valid";
    } catch {
      return false;
    }
  }
}
