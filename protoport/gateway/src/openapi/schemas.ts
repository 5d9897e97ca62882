import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { type BoundFields, jsonNameOf } from "../protobuf/index.ts";
import { type Commented, commentOf, type Comments } from "./comments.ts";
import { createExample } from "./example.ts";
import {
  maxComponentFields,
  fieldsOmittedNote,
  maxDocumentFields,
  maxExampleFields,
  FieldBudget,
} from "./field-budget.ts";
import { isInputOnly, isOutputOnly, isRequired } from "./field-behavior.ts";
import { fieldFormatOf } from "./field-format.ts";
import type { FieldRules } from "./field-rules.ts";
import type { OpenApiSchema } from "./open-api-document.ts";
import { externalDocsOf } from "./openapi-options.ts";
import { schemaOfMapKeys, schemaOfScalar, schemaOfWellKnown, type ValuePlace } from "./value-schema.ts";

interface SchemaOptions {
  readonly comments: Pick<Comments, "get">;
  /** Whether fields have their proto names instead of their JSON names. */
  readonly useProtoFieldName: boolean;
  /** Whether a service writes 64-bit integers as numbers. */
  readonly int64Numbers: boolean;
  /** The response messages that omit scalars without presence if the value is zero. */
  readonly abridged: ReadonlySet<DescMessage>;
  /** The prefix of references to message and enum schemas, such as `#/components/schemas/`. */
  readonly referencePrefix: string;
  /** The request messages in which unknown fields are refused. */
  readonly closed: Pick<ReadonlySet<DescMessage>, "has">;
  /** The field rules that the server checks. */
  readonly rules?: FieldRules | undefined;
  /** The budget for fields in messages and values in enums. By default, each component has a separate budget. */
  readonly total?: FieldBudget;
  /** Whether messages have examples. Default true. */
  readonly hasExamples?: boolean;
  /** Returns whether a field with this name is described. By default, all fields are described. */
  readonly isNameShown?: (name: string) => boolean;
}

/**
 * Creates a document's schemas, including the schemas of referenced messages and enums. A schema has the type's name.
 * The name includes the package only if an earlier type has the same short name. Several upstreams may define a type
 * with one full name, so a name that is still taken gets a number.
 */
export class Schemas {
  readonly #options: SchemaOptions;
  readonly #names = new Map<DescMessage | DescEnum, string>();
  readonly #components = new Map<string, OpenApiSchema>();
  /** The queue of components to describe, because a schema refers to each. */
  readonly #referencedSchemas: { readonly name: string; readonly describe: () => OpenApiSchema }[] = [];
  /** The document's budget for the fields in parameters, inline bodies and examples. */
  readonly budget: FieldBudget = new FieldBudget(maxDocumentFields);

  constructor(options: SchemaOptions) {
    this.#options = options;
  }

  /** Describes the components to which schemas refer, by name. Yields once per component. */
  *components(): Generator<void, Readonly<Record<string, OpenApiSchema>>> {
    // The loop also visits the components that it adds.
    for (const { name, describe } of this.#referencedSchemas) {
      this.#components.set(name, describe());
      yield;
    }
    return Object.fromEntries([...this.#components].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Returns a reference to a message's schema, or the schema itself for a type with its own JSON form. */
  ofMessage(desc: DescMessage): OpenApiSchema {
    return this.#ofMessage(desc, "json");
  }

  /** Returns a reference to a message's schema with all fields required. `notes` adds keywords by proto field name. */
  ofRecord(desc: DescMessage, notes: Readonly<Record<string, OpenApiSchema>>): OpenApiSchema {
    return this.#referenceTo(desc, () => ({
      type: "object",
      ...this.#describe(desc),
      properties: Object.fromEntries(
        desc.fields.map((field) => [this.nameOf(field), { ...this.ofField(field), ...notes[field.name] }]),
      ),
      ...this.#require(desc.fields),
    }));
  }

  /** Adds a schema with a name that no message has, and returns a reference to it. */
  ofOther(name: string, schema: OpenApiSchema): OpenApiSchema {
    this.#components.set(name, schema);
    return { $ref: this.#options.referencePrefix + name };
  }

  /** Returns a message's object schema, without the fields in `bound` that the path sets. */
  ofObject(desc: DescMessage, bound?: BoundObject): OpenApiSchema {
    const { total, hasExamples = true, isNameShown } = this.#options;
    const budget = bound?.budget ?? new FieldBudget(maxComponentFields, total);
    const fields: DescField[] = [];
    let omitsFields = false;
    for (const field of desc.fields) {
      if (bound?.byPath.get(field) === "whole") continue;
      const name = this.nameOf(field);
      if (budget.isExceeded || !budget.takeField(name, this.commentOf(field))) {
        omitsFields = true;
        break;
      }
      if (isNameShown?.(name) === false) omitsFields = true;
      else fields.push(field);
    }
    const closingKeywords = omitsFields ? { $comment: fieldsOmittedNote } : this.#close(desc, bound);
    if (fields.length === 0) return { type: "object", ...this.#describe(desc), ...closingKeywords };
    return {
      type: "object",
      ...this.#describe(desc),
      properties: Object.fromEntries(fields.map((field) => [this.nameOf(field), this.#ofProperty(field, bound)])),
      ...this.#require(fields.filter((field) => this.#isAlwaysSet(field))),
      ...this.#exclude(desc, fields),
      ...closingKeywords,
      ...(!omitsFields && hasExamples && this.#exemplify(desc, bound?.byPath)),
    };
  }

  // A message with proto2 extensions, or a body that may repeat path fields, does not refuse unknown fields.
  #close(desc: DescMessage, bound?: BoundObject): OpenApiSchema {
    const isOpen = desc.proto.extensionRange.length > 0 || (bound !== undefined && bound.mayRepeat);
    return this.#options.closed.has(desc) && !isOpen ? { additionalProperties: false } : {};
  }

  #exemplify(desc: DescMessage, boundByPath: BoundFields | undefined): OpenApiSchema {
    const nameOf = (field: DescField): string => this.nameOf(field);
    const { rules } = this.#options;
    const example = createExample(desc, { nameOf, boundByPath, total: this.budget, rules });
    if (example === "too large") return { $comment: noExample };
    if (example === undefined) return {};
    if (rules === undefined || boundByPath !== undefined || rules.accepts(desc, example))
      return { examples: [example] };
    // Tries an example with only the required fields, because a rule may exclude another field's value.
    const required = desc.fields
      .filter((field) => this.isRequired(field))
      .map((field) => [nameOf(field), example[nameOf(field)]]);
    const smallest = Object.fromEntries(required.filter(([, value]) => value !== undefined));
    return rules.accepts(desc, smallest) ? { examples: [smallest] } : {};
  }

  isRequired(field: DescField): boolean {
    return isRequired(field) || (!isOutputOnly(field) && this.#options.rules?.isRequired(field) === true);
  }

  /** Returns the schema for a field in JSON. */
  ofField(field: DescField, bound?: BoundObject): OpenApiSchema {
    const schema =
      bound !== undefined && field.fieldKind === "message"
        ? this.ofObject(field.message, bound)
        : this.#ofField(field, "json");
    return { ...schema, ...this.#describe(field) };
  }

  /** Returns the schema for a field that is the complete body. The body is null if a message field is not set. */
  ofWholeBody(field: DescField): OpenApiSchema {
    if (field.fieldKind !== "message") return this.ofField(field);
    return { anyOf: [{ ...this.#ofField(field, "json") }, { type: "null" }], ...this.#describe(field) };
  }

  /** Returns the schema for a field in the path or the query. */
  ofParameter(field: DescField): OpenApiSchema {
    return this.#ofField(field, "parameter");
  }

  /** Returns the definition's comment for a descriptor, if any. */
  commentOf(desc: Commented): string | undefined {
    return commentOf(this.#options.comments, desc);
  }

  /** Returns the name that a field has in JSON. */
  nameOf(field: DescField): string {
    return jsonNameOf(field, this.#options);
  }

  #ofProperty(field: DescField, bound: BoundObject | undefined): OpenApiSchema {
    const nestedBound = bound?.byPath.get(field);
    return {
      ...this.ofField(
        field,
        bound && nestedBound && nestedBound !== "whole" ? { ...bound, byPath: nestedBound } : undefined,
      ),
      ...(isOutputOnly(field) && { readOnly: true }),
      ...(isInputOnly(field) && { writeOnly: true }),
    };
  }

  #require(fields: readonly DescField[]): OpenApiSchema {
    return fields.length === 0 ? {} : { required: fields.map((field) => this.nameOf(field)) };
  }

  /** Returns the keyword that allows only one member in each oneof. */
  #exclude(desc: DescMessage, fields: readonly DescField[]): OpenApiSchema {
    // `dependentSchemas` is used because generators would create further types for `oneOf` and `not`. If the schemas of
    // excluded properties were `false`, validators would treat all properties as unevaluated.
    const shownFields = new Set(fields);
    const exclusions = desc.oneofs.flatMap((oneof) => {
      const members = oneof.fields.filter((field) => shownFields.has(field)).slice(0, maxExcludedMembers);
      const names = members.map((field) => this.nameOf(field));
      return names.slice(0, -1).map((name, at) => [name, refuseNames(names.slice(at + 1))] as const);
    });
    return exclusions.length === 0 ? {} : { dependentSchemas: Object.fromEntries(exclusions) };
  }

  // A component describes requests and responses, so a field that responses may omit is not required.
  #isAlwaysSet(field: DescField): boolean {
    const hasPresence = field.presence !== FeatureSet_FieldPresence.IMPLICIT;
    return this.isRequired(field) && (hasPresence || !this.#options.abridged.has(field.parent));
  }

  #ofField(field: DescField, place: ValuePlace): OpenApiSchema {
    const { value, element, key } = this.#options.rules?.keywordsOf(field) ?? {};
    const ofValue = { ...this.#ofElement(field, place), ...fieldFormatOf(field)?.keywords };
    const ofElement = { ...ofValue, ...fitting(element, ofValue) };
    switch (field.fieldKind) {
      case "list":
        return { type: "array", ...value, items: ofElement };
      case "map": {
        const ofKeys = schemaOfMapKeys(field.mapKey);
        const propertyNames = (ofKeys ?? key) && { propertyNames: { ...ofKeys, ...key } };
        return { type: "object", ...value, ...propertyNames, additionalProperties: ofElement };
      }
      default:
        return { ...ofValue, ...fitting(value, ofValue) };
    }
  }

  // Returns the schema for a singular field, or for an element of a list or map.
  #ofElement(field: DescField, place: ValuePlace): OpenApiSchema {
    if (field.message !== undefined) return this.#ofMessage(field.message, place);
    if (field.enum !== undefined) return this.#ofEnum(field.enum, place);
    return schemaOfScalar(field.scalar, place, this.#options.int64Numbers);
  }

  #ofMessage(desc: DescMessage, place: ValuePlace): OpenApiSchema {
    if (isWrapperDesc(desc)) return schemaOfScalar(desc.fields[0].scalar, place, this.#options.int64Numbers);
    if (desc.typeName === "google.protobuf.Empty") return { type: "object", ...this.#close(desc) };
    return schemaOfWellKnown(desc, place) ?? this.#referenceTo(desc, () => this.ofObject(desc));
  }

  #ofEnum(desc: DescEnum, place: ValuePlace): OpenApiSchema {
    // Generators produce incomplete types for `type: "null"` and for a null enum.
    if (desc.typeName === "google.protobuf.NullValue" && place === "json") return { const: null };
    return this.#referenceTo(desc, () =>
      desc.values.length > maxComponentFields || this.#options.total?.reserve(desc.values.length) === false
        ? {
            type: "string",
            ...this.#describe(desc),
            $comment: `The ${desc.values.length} names of this enum are too many to list.`,
          }
        : { type: "string", ...this.#describeEnum(desc), enum: desc.values.map(({ name }) => name) },
    );
  }

  #referenceTo(desc: DescMessage | DescEnum, describe: () => OpenApiSchema): OpenApiSchema {
    let name = this.#names.get(desc);
    if (name === undefined) {
      name = this.#freeName(desc);
      this.#names.set(desc, name);
      this.#components.set(name, {});
      // The component is queued, because a recursive description of a long chain of types would overflow the stack.
      this.#referencedSchemas.push({ name, describe });
    }
    return { $ref: this.#options.referencePrefix + name };
  }

  #freeName(desc: DescMessage | DescEnum): string {
    const { package: packageName } = desc.file.proto;
    const short = packageName === "" ? desc.typeName : desc.typeName.slice(packageName.length + 1);
    let name = this.#components.has(short) ? desc.typeName : short;
    for (let count = 2; this.#components.has(name); count++) name = `${desc.typeName}_${count}`;
    return name;
  }

  #describe(desc: DescMessage | DescField | DescEnum): OpenApiSchema {
    const description = this.commentOf(desc);
    return {
      ...(description !== undefined && { description }),
      ...(desc.deprecated && { deprecated: true }),
      ...externalDocsOf(desc),
    };
  }

  // The description includes the values' comments, because JSON Schema has no keyword for them.
  #describeEnum(desc: DescEnum): OpenApiSchema {
    const values = desc.values.flatMap((value) => {
      const comment = this.commentOf(value);
      return comment === undefined ? [] : [`- \`${value.name}\`: ${comment.replaceAll("\n", "\n  ")}`];
    });
    const parts = [this.commentOf(desc) ?? "", values.join("\n")].filter((part) => part !== "");
    return {
      ...(parts.length > 0 && { description: parts.join("\n\n") }),
      ...(desc.deprecated && { deprecated: true }),
      ...externalDocsOf(desc),
    };
  }
}

/** Options for a body's schema: the fields that the path sets, and the budget for the other fields. */
export interface BoundObject {
  readonly byPath: BoundFields;
  readonly budget: FieldBudget;
  /** Whether the body may repeat the fields that the path sets. */
  readonly mayRepeat: boolean;
}

const noExample = `The example is left out: it would have more than ${maxExampleFields} fields.`;

/** Maximum members of a oneof that are described as mutually exclusive. 50 members produce 1,225 names. */
const maxExcludedMembers = 50;

/**
 * Removes keyword values that do not have the schema's type, because rules list 64-bit integers as strings and as
 * numbers. Keeps all values for a reference to an enum, which has no type.
 */
function fitting(keywords: OpenApiSchema | undefined, { type }: OpenApiSchema): OpenApiSchema {
  if (keywords === undefined || type === undefined) return keywords ?? {};
  const types = new Set([type].flat());
  const fits = (value: unknown): boolean =>
    typeof value === "string"
      ? types.has("string")
      : typeof value !== "number" || !types.has("string") || types.size > 1;
  const entries = Object.entries(keywords).flatMap(([keyword, value]) => {
    if (keyword === "const") return fits(value) ? [[keyword, value] as const] : [];
    if ((keyword !== "enum" && keyword !== "examples") || !Array.isArray(value)) return [[keyword, value] as const];
    const kept = value.filter(fits);
    return kept.length > 0 ? [[keyword, kept] as const] : [];
  });
  return Object.fromEntries(entries);
}

function refuseNames(names: string[]): OpenApiSchema {
  return { propertyNames: { not: { enum: names } } };
}
