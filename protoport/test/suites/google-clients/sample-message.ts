import { ScalarType } from "@bufbuild/protobuf";
import type { DescEnum, DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";

/** Values for scalar fields in JSON: limits, and characters that have a meaning in URLs and in JSON. */
// oxfmt-ignore
const scalars: Readonly<Record<ScalarType, JsonValue>> = {
  [ScalarType.STRING]: 'é ?&=+%2F"\\/#', [ScalarType.BYTES]: "AP/+7wo=", [ScalarType.BOOL]: true,
  [ScalarType.DOUBLE]: -1.5e-7, [ScalarType.FLOAT]: 0.25, [ScalarType.INT32]: -2147483648,
  [ScalarType.SINT32]: -2147483648, [ScalarType.SFIXED32]: -2147483648, [ScalarType.UINT32]: 4294967295,
  [ScalarType.FIXED32]: 4294967295, [ScalarType.INT64]: "9007199254740993", [ScalarType.SINT64]: "9007199254740993",
  [ScalarType.SFIXED64]: "9007199254740993", [ScalarType.UINT64]: "18446744073709551615",
  [ScalarType.FIXED64]: "18446744073709551615",
};

/** Types with a special form in JSON. An Any is omitted, because its type would be arbitrary. */
// oxfmt-ignore
const specialForms: Readonly<Record<string, JsonValue | undefined>> = {
  "google.protobuf.Any": undefined, "google.protobuf.Duration": "3.000000001s",
  "google.protobuf.FieldMask": "displayName,rateLimits.maxBurstSize", "google.protobuf.ListValue": [null, 1.5],
  "google.protobuf.Struct": { a: [true, { b: "c" }] }, "google.protobuf.Timestamp": "2026-11-26T18:00:00.123456789Z",
  "google.protobuf.Value": "v",
};

/** How deep messages are nested. Some types contain themselves. */
const maxDepth = 4;

/** Creates messages in which every field is set. Each message sets another oneof member than the previous one. */
export class MessageSampler {
  /** How many messages each type has so far. */
  readonly #counts = new Map<DescMessage, number>();

  /**
   * Returns a message in JSON.
   *
   * @param isSet - whether to set a field of the message itself, for fields that cannot be sent
   */
  sample(desc: DescMessage, isSet: (field: DescField) => boolean = () => true, depth = 1): JsonObject {
    const count = this.#counts.get(desc) ?? 0;
    this.#counts.set(desc, count + 1);
    const message: JsonObject = {};
    for (const member of desc.members) {
      const fields = member.kind === "field" ? [member] : rotate(member.fields, count);
      for (const field of fields.filter(isSet)) {
        const value = this.#fieldValue(field, depth);
        if (value === undefined) continue;
        message[field.jsonName] = value;
        break;
      }
    }
    return message;
  }

  #fieldValue(field: DescField, depth: number): JsonValue | undefined {
    const value = this.#value(field, depth);
    if (value === undefined) return undefined;
    if (field.fieldKind === "list") return [value, this.#value(field, depth) ?? value];
    if (field.fieldKind !== "map") return value;
    return { [field.mapKey === ScalarType.STRING ? "clé" : "1"]: value };
  }

  #value({ message, enum: type, scalar = ScalarType.STRING }: DescField, depth: number): JsonValue | undefined {
    if (message === undefined) return type === undefined ? scalars[scalar] : lastName(type);
    if (message.typeName in specialForms) return specialForms[message.typeName];
    if (isWrapper(message)) return this.#value(message.field.value, depth);
    return depth >= maxDepth ? undefined : this.sample(message, undefined, depth + 1);
  }
}

function isWrapper(desc: DescMessage): desc is DescMessage & { readonly field: { readonly value: DescField } } {
  return desc.file.proto.name === "google/protobuf/wrappers.proto";
}

function rotate<T>(values: readonly T[], by: number): readonly T[] {
  const start = by % values.length;
  return [...values.slice(start), ...values.slice(0, start)];
}

function lastName({ values, typeName }: DescEnum): JsonValue {
  return typeName === "google.protobuf.NullValue" ? null : (values.at(-1)?.name ?? null);
}
