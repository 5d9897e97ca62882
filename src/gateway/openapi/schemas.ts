import type { DescEnum, DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { commentOf, type Comments } from "./comments.ts";
import type { OpenApiSchema } from "./open-api-document.ts";
import { schemaOfScalar, schemaOfWellKnown, type ValuePlace } from "./value-schema.ts";

/** Fields that a schema leaves out, because the path has them: whole, or some of the fields inside of them. */
export type FieldsElsewhere = ReadonlyMap<DescField, "whole" | FieldsElsewhere>;

const nothingElsewhere: FieldsElsewhere = new Map();

/** How schemas are written. */
export interface SchemaOptions {
  readonly comments: Comments;
  /** Names fields as the definition does, in place of their JSON names. */
  readonly useProtoFieldName: boolean;
}

/**
 * The schemas of a document's messages and enums, gathered as they are referred to.
 *
 * A type goes by its name within its package; a second type of that name goes by its full one.
 */
export class Schemas {
  readonly #options: SchemaOptions;
  readonly #names = new Map<DescMessage | DescEnum, string>();
  readonly #components = new Map<string, OpenApiSchema>();

  constructor(options: SchemaOptions) {
    this.#options = options;
  }

  /** Everything that was referred to, by name, in the order of the alphabet. */
  components(): Readonly<Record<string, OpenApiSchema>> {
    return Object.fromEntries([...this.#components].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The schema of a message: a reference, or what its JSON is where it has a form of its own. */
  ofMessage(desc: DescMessage): OpenApiSchema {
    return this.#ofMessage(desc, "json");
  }

  /** A reference to a message whose fields are always all written, as the records of errors are. */
  ofRecord(desc: DescMessage): OpenApiSchema {
    const names = desc.fields.map((field) => this.#nameOf(field));
    return this.#refer(desc, () => ({ ...this.ofObject(desc), ...(names.length > 0 && { required: names }) }));
  }

  /** The object of a message's fields, without those that are elsewhere. */
  ofObject(desc: DescMessage, elsewhere: FieldsElsewhere = nothingElsewhere): OpenApiSchema {
    const properties: Record<string, JsonValue> = {};
    for (const field of desc.fields) {
      const except = elsewhere.get(field);
      if (except !== "whole") properties[this.#nameOf(field)] = this.ofField(field, except);
    }
    const hasProperties = Object.keys(properties).length > 0;
    return { type: "object", ...this.#describe(desc), ...(hasProperties && { properties }) };
  }

  /** The schema of a field in JSON. */
  ofField(field: DescField, elsewhere?: FieldsElsewhere): OpenApiSchema {
    const schema =
      elsewhere !== undefined && field.fieldKind === "message"
        ? this.ofObject(field.message, elsewhere)
        : this.#ofField(field, "json");
    return { ...schema, ...this.#describe(field) };
  }

  /** The schema of a field that is a whole body of its own: a message that is not set is then null. */
  ofWhole(field: DescField): OpenApiSchema {
    if (field.fieldKind !== "message") return this.ofField(field);
    return { anyOf: [{ ...this.#ofField(field, "json") }, { type: "null" }], ...this.#describe(field) };
  }

  /** The schema of a field whose value is a text in the path or the query. */
  ofParameter(field: DescField): OpenApiSchema {
    return this.#ofField(field, "parameter");
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

  // Of a list or a map: that of one element.
  #ofElement(field: DescField, place: ValuePlace): OpenApiSchema {
    if (field.message !== undefined) return this.#ofMessage(field.message, place);
    if (field.enum !== undefined) return this.#ofEnum(field.enum, place);
    return schemaOfScalar(field.scalar, place);
  }

  #ofMessage(desc: DescMessage, place: ValuePlace): OpenApiSchema {
    if (isWrapperDesc(desc)) return schemaOfScalar(desc.fields[0].scalar, place);
    return schemaOfWellKnown(desc) ?? this.#refer(desc, () => this.ofObject(desc));
  }

  #ofEnum(desc: DescEnum, place: ValuePlace): OpenApiSchema {
    if (desc.typeName === "google.protobuf.NullValue" && place === "json") return { type: "null" };
    return this.#refer(desc, () => ({
      type: "string",
      ...this.#describeEnum(desc),
      enum: desc.values.map((value) => value.name),
    }));
  }

  #refer(desc: DescMessage | DescEnum, describe: () => OpenApiSchema): OpenApiSchema {
    let name = this.#names.get(desc);
    if (name === undefined) {
      name = this.#freeName(desc);
      this.#names.set(desc, name);
      // Taken before it is described, since a message may hold itself.
      this.#components.set(name, {});
      this.#components.set(name, describe());
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  #freeName(desc: DescMessage | DescEnum): string {
    const { package: packageName } = desc.file.proto;
    const short = packageName === "" ? desc.typeName : desc.typeName.slice(packageName.length + 1);
    return this.#components.has(short) ? desc.typeName : short;
  }

  #nameOf(field: DescField): string {
    return this.#options.useProtoFieldName ? field.name : field.jsonName;
  }

  #describe(desc: DescMessage | DescField): OpenApiSchema {
    const description = commentOf(this.#options.comments, desc);
    return { ...(description !== undefined && { description }), ...(desc.deprecated && { deprecated: true }) };
  }

  // JSON Schema has no place for the comment of one value.
  #describeEnum(desc: DescEnum): OpenApiSchema {
    const { comments } = this.#options;
    const values = desc.values.flatMap((value) => {
      const comment = commentOf(comments, value);
      return comment === undefined ? [] : [`- \`${value.name}\`: ${comment.replaceAll("\n", "\n  ")}`];
    });
    const parts = [commentOf(comments, desc) ?? "", values.join("\n")].filter((part) => part !== "");
    return {
      ...(parts.length > 0 && { description: parts.join("\n\n") }),
      ...(desc.deprecated && { deprecated: true }),
    };
  }
}
