import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { type BoundFields, jsonNameOf } from "../messages/json/index.ts";
import { type Commented, commentOf, type Comments } from "./comments.ts";
import { createExample } from "./example.ts";
import { componentFieldsMax, cutOff, documentFieldsMax, exampleFieldsMax, Expansion } from "./expansion.ts";
import { isInputOnly, isOutputOnly, isRequired } from "./field-behavior.ts";
import type { OpenApiSchema } from "./open-api-document.ts";
import { schemaOfScalar, schemaOfWellKnown, type ValuePlace } from "./value-schema.ts";

/** Options of {@link Schemas}. */
export interface SchemaOptions {
  readonly comments: Comments;
  /** Uses the proto names of fields instead of their JSON names. */
  readonly useProtoFieldName: boolean;
  /** Whether a service writes 64-bit integers as numbers. */
  readonly int64Numbers: boolean;
  /** The messages from which answers may leave out a scalar without presence, because its value is zero. */
  readonly abridged: ReadonlySet<DescMessage>;
}

/**
 * Creates the schemas of a document and collects those of the messages and enums that they refer to.
 *
 * A type has its name within its package, or its full name if an earlier type has the same.
 */
export class Schemas {
  readonly #options: SchemaOptions;
  readonly #names = new Map<DescMessage | DescEnum, string>();
  readonly #components = new Map<string, OpenApiSchema>();
  /** The components that were referred to, but are not described yet. */
  readonly #referred: { readonly name: string; readonly describe: () => OpenApiSchema }[] = [];
  /** What the document repeats. */
  readonly expansion: Expansion = new Expansion(documentFieldsMax);

  constructor(options: SchemaOptions) {
    this.#options = options;
  }

  /** Describes what was referred to, and what that refers to, in a step for each; returns all, sorted by name. */
  *components(): Generator<void, Readonly<Record<string, OpenApiSchema>>> {
    // Iterating over an array includes what is added to it meanwhile.
    for (const { name, describe } of this.#referred) {
      this.#components.set(name, describe());
      yield;
    }
    return Object.fromEntries([...this.#components].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Returns the schema of a message: a reference, or inline for a type with its own JSON form. */
  ofMessage(desc: DescMessage): OpenApiSchema {
    return this.#ofMessage(desc, "json");
  }

  /**
   * Returns a reference to a message whose every field is always written, such as an error record.
   *
   * @param notes - additions to the schemas of its fields, by proto name
   */
  ofRecord(desc: DescMessage, notes: Readonly<Record<string, OpenApiSchema>>): OpenApiSchema {
    return this.#refer(desc, () => ({
      type: "object",
      ...this.#describe(desc),
      properties: Object.fromEntries(
        desc.fields.map((field) => [this.nameOf(field), { ...this.ofField(field), ...notes[field.name] }]),
      ),
      ...this.#require(desc.fields),
    }));
  }

  /** Returns a reference to a schema that describes no message of the definition, under a name that no message has. */
  ofOther(name: string, schema: OpenApiSchema): OpenApiSchema {
    this.#components.set(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  }

  /**
   * Returns the object schema of a message.
   *
   * @param bound - the fields that the path sets, which it lacks, and what the others count towards, as each operation
   * repeats them
   */
  ofObject(desc: DescMessage, bound?: BoundObject): OpenApiSchema {
    const expansion = bound?.expansion ?? new Expansion(componentFieldsMax);
    const inBody = desc.fields.filter((field) => bound?.byPath.get(field) !== "whole");
    const fields = inBody.filter(
      (field) => !expansion.isCut && expansion.takeField(this.nameOf(field), this.commentOf(field)),
    );
    const isCut = fields.length < inBody.length;
    if (fields.length === 0) return { type: "object", ...this.#describe(desc), ...(isCut && { $comment: cutOff }) };
    return {
      type: "object",
      ...this.#describe(desc),
      properties: Object.fromEntries(fields.map((field) => [this.nameOf(field), this.#ofProperty(field, bound)])),
      ...this.#require(fields.filter((field) => this.#isAlwaysSet(field))),
      ...this.#exclude(desc, fields),
      ...(isCut ? { $comment: cutOff } : this.#exemplify(desc, bound?.byPath)),
    };
  }

  #exemplify(desc: DescMessage, boundByPath: BoundFields | undefined): OpenApiSchema {
    const nameOf = (field: DescField): string => this.nameOf(field);
    const example = createExample(desc, { nameOf, boundByPath, whole: this.expansion });
    if (example === "too large") return { $comment: noExample };
    return example === undefined ? {} : { examples: [example] };
  }

  /** Returns the schema of a field in JSON. */
  ofField(field: DescField, bound?: BoundObject): OpenApiSchema {
    const schema =
      bound !== undefined && field.fieldKind === "message"
        ? this.ofObject(field.message, bound)
        : this.#ofField(field, "json");
    return { ...schema, ...this.#describe(field) };
  }

  /** Returns the schema of a field that is the whole body: a message that is not set is then null. */
  ofWholeBody(field: DescField): OpenApiSchema {
    if (field.fieldKind !== "message") return this.ofField(field);
    return { anyOf: [{ ...this.#ofField(field, "json") }, { type: "null" }], ...this.#describe(field) };
  }

  /** Returns the schema of a field in the path or the query. */
  ofParameter(field: DescField): OpenApiSchema {
    return this.#ofField(field, "parameter");
  }

  /** Returns the comment of the definition that describes a descriptor; `undefined` when there is none. */
  commentOf(desc: Commented): string | undefined {
    return commentOf(this.#options.comments, desc);
  }

  /** Returns the name of a field in JSON. */
  nameOf(field: DescField): string {
    return jsonNameOf(field, this.#options);
  }

  #ofProperty(field: DescField, bound: BoundObject | undefined): OpenApiSchema {
    const below = bound?.byPath.get(field);
    return {
      ...this.ofField(field, bound && below && below !== "whole" ? { ...bound, byPath: below } : undefined),
      ...(isOutputOnly(field) && { readOnly: true }),
      ...(isInputOnly(field) && { writeOnly: true }),
    };
  }

  #require(fields: readonly DescField[]): OpenApiSchema {
    return fields.length === 0 ? {} : { required: fields.map((field) => this.nameOf(field)) };
  }

  /** Says that only one member of each oneof may be set. */
  #exclude(desc: DescMessage, fields: readonly DescField[]): OpenApiSchema {
    // Not by `oneOf`, of which generators would make types of their own, nor by `dependentSchemas`, after which
    // validators find no property evaluated.
    const shown = new Set(fields);
    const pairs = desc.oneofs.flatMap((oneof) => {
      const members = oneof.fields.filter((field) => shown.has(field)).slice(0, excludedMembersMax);
      const names = members.map((field) => this.nameOf(field));
      return names.flatMap((one, at) => names.slice(at + 1).map((other) => bothOf(one, other)));
    });
    const [pair] = pairs;
    return pair === undefined ? {} : { not: pairs.length === 1 ? pair : { anyOf: pairs } };
  }

  // A component describes its message in requests and in answers.
  #isAlwaysSet(field: DescField): boolean {
    const hasPresence = field.presence !== FeatureSet_FieldPresence.IMPLICIT;
    return isRequired(field) && (hasPresence || !this.#options.abridged.has(field.parent));
  }

  #ofField(field: DescField, place: ValuePlace): OpenApiSchema {
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: this.#ofElement(field, place) };
      case "map":
        return { type: "object", additionalProperties: this.#ofElement(field, place) };
      default:
        return this.#ofElement(field, place);
    }
  }

  // The schema of a list's or a map's elements, or of any other field.
  #ofElement(field: DescField, place: ValuePlace): OpenApiSchema {
    if (field.message !== undefined) return this.#ofMessage(field.message, place);
    if (field.enum !== undefined) return this.#ofEnum(field.enum, place);
    return schemaOfScalar(field.scalar, place, this.#options.int64Numbers);
  }

  #ofMessage(desc: DescMessage, place: ValuePlace): OpenApiSchema {
    if (isWrapperDesc(desc)) return schemaOfScalar(desc.fields[0].scalar, place, this.#options.int64Numbers);
    return schemaOfWellKnown(desc) ?? this.#refer(desc, () => this.ofObject(desc));
  }

  #ofEnum(desc: DescEnum, place: ValuePlace): OpenApiSchema {
    // As `type: "null"` or an enum of null, generators make a type of it, and then lack that or its values.
    if (desc.typeName === "google.protobuf.NullValue" && place === "json") return { const: null };
    return this.#refer(desc, () =>
      desc.values.length > componentFieldsMax
        ? { type: "string", ...this.#describe(desc), $comment: `One of ${desc.values.length} names.` }
        : { type: "string", ...this.#describeEnum(desc), enum: desc.values.map(({ name }) => name) },
    );
  }

  #refer(desc: DescMessage | DescEnum, describe: () => OpenApiSchema): OpenApiSchema {
    let name = this.#names.get(desc);
    if (name === undefined) {
      name = this.#freeName(desc);
      this.#names.set(desc, name);
      this.#components.set(name, {});
      // Later, because a chain of messages may be longer than the stack.
      this.#referred.push({ name, describe });
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  #freeName(desc: DescMessage | DescEnum): string {
    const { package: packageName } = desc.file.proto;
    const short = packageName === "" ? desc.typeName : desc.typeName.slice(packageName.length + 1);
    return this.#components.has(short) ? desc.typeName : short;
  }

  #describe(desc: DescMessage | DescField | DescEnum): OpenApiSchema {
    const description = this.commentOf(desc);
    return { ...(description !== undefined && { description }), ...(desc.deprecated && { deprecated: true }) };
  }

  // JSON Schema has no keyword for the comment of one value.
  #describeEnum(desc: DescEnum): OpenApiSchema {
    const values = desc.values.flatMap((value) => {
      const comment = this.commentOf(value);
      return comment === undefined ? [] : [`- \`${value.name}\`: ${comment.replaceAll("\n", "\n  ")}`];
    });
    const parts = [this.commentOf(desc) ?? "", values.join("\n")].filter((part) => part !== "");
    return {
      ...(parts.length > 0 && { description: parts.join("\n\n") }),
      ...(desc.deprecated && { deprecated: true }),
    };
  }
}

/** The fields of a message that the path sets, and what the others count towards. */
export interface BoundObject {
  readonly byPath: BoundFields;
  readonly expansion: Expansion;
}

const noExample = `The example is left out: it would have more than ${exampleFieldsMax} fields.`;

/** The first members of a oneof, of which each two are said to exclude each other: 16 of them are 120 pairs. */
const excludedMembersMax = 16;

// Linters want to know a property that is required.
function bothOf(one: string, other: string): OpenApiSchema {
  return { properties: { [one]: {}, [other]: {} }, required: [one, other] };
}
