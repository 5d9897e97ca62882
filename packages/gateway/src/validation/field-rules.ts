import {
  create,
  type DescField,
  type DescFile,
  type DescMessage,
  fromJson,
  getOption,
  hasOption,
  type JsonObject,
} from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import { createReachableRegistry } from "../messages/json/index.ts";
import type { FieldKeywords, FieldRules } from "../openapi/index.ts";
import type { Protovalidate } from "./protovalidate.ts";
import { exampleOf } from "./rule-example.ts";
import { keywordsOf } from "./rule-keywords.ts";

/** Describes the `buf.validate` rules of fields for documents, by their options and by validating messages. */
export class DescribedRules implements FieldRules {
  readonly #protovalidate: Protovalidate;
  readonly #validators = new Map<DescFile, Validator>();
  readonly #required = new Map<DescMessage, ReadonlySet<DescField>>();

  constructor(protovalidate: Protovalidate) {
    this.#protovalidate = protovalidate;
  }

  keywordsOf(field: DescField): FieldKeywords | undefined {
    const { field: fieldRules, FieldRulesSchema } = this.#protovalidate;
    if (!hasOption(field, fieldRules)) return undefined;
    return keywordsOf(field, getOption(field, fieldRules), FieldRulesSchema);
  }

  isRequired(field: DescField): boolean {
    if (field.oneof !== undefined && field.oneof.fields.length > 1) return false;
    const { parent } = field;
    let required = this.#required.get(parent);
    if (required === undefined) {
      // A string that must not be empty is required too, because it is empty if it is not sent.
      const { violations = [] } = this.#validatorOf(parent).validate(parent, create(parent));
      const paths = violations.map((violation) => violation.field);
      required = new Set(
        parent.fields.filter((each) => paths.some(([first, ...below]) => first === each && below.length === 0)),
      );
      this.#required.set(parent, required);
    }
    return required.has(field);
  }

  exampleOf(field: DescField): readonly (string | number | boolean)[] | undefined {
    const { field: fieldRules } = this.#protovalidate;
    if (!hasOption(field, fieldRules)) return undefined;
    const { value, element } = this.keywordsOf(field) ?? {};
    const { cel, celExpression } = getOption(field, fieldRules);
    const keywords = field.fieldKind === "list" || field.fieldKind === "map" ? element : value;
    // No value can be found for an expression.
    if (cel.length + celExpression.length > 0 && keywords?.["examples"] === undefined) return [];
    if (keywords === undefined || Object.keys(keywords).length === 0) return undefined;
    const example = exampleOf(keywords);
    return example === undefined ? [] : [example];
  }

  accepts(type: DescMessage, json: JsonObject): boolean {
    try {
      const message = fromJson(type, json, { registry: createReachableRegistry([type]) });
      return this.#validatorOf(type).validate(type, message).kind === "valid";
    } catch {
      return false;
    }
  }

  #validatorOf(type: DescMessage): Validator {
    const { file } = type;
    let validator = this.#validators.get(file);
    if (validator === undefined) {
      validator = this.#protovalidate.createValidator({ registry: createReachableRegistry([type]) });
      this.#validators.set(file, validator);
    }
    return validator;
  }
}
