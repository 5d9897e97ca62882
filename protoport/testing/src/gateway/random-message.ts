// oxfmt-ignore
import { create, createRegistry, type DescExtension, type DescField, type DescMessage, type Message, type Registry,
  ScalarType, setExtension, toBinary } from "@bufbuild/protobuf";
// oxfmt-ignore
import { AnySchema, FieldMaskSchema, file_google_protobuf_any, file_google_protobuf_descriptor,
  file_google_protobuf_duration, file_google_protobuf_field_mask, file_google_protobuf_struct,
  file_google_protobuf_timestamp, file_google_protobuf_wrappers, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { isRequiredField } from "../../../gateway/src/protobuf/messages/json/index.ts";
import { file_google_api_annotations } from "../../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { file_google_api_http } from "../../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { file_kitchensink_v1_kitchen_sink } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { file_kitchensink_v1_legacy } from "../gen/kitchensink/v1/legacy_pb.ts";
import { file_kitchensink_v1_shelves } from "../gen/kitchensink/v1/shelves_pb.ts";
import { file_library_v1_library } from "../gen/library/v1/library_pb.ts";
import type { Dice } from "../dice.ts";

/** The types of random messages, from proto3, from proto2 with extensions, and from descriptor.proto. */
// oxfmt-ignore
export const randomTypes: Registry = createRegistry(
  file_google_protobuf_any, file_google_protobuf_descriptor, file_google_protobuf_duration,
  file_google_protobuf_field_mask, file_google_protobuf_struct, file_google_protobuf_timestamp,
  file_google_protobuf_wrappers, file_google_api_annotations, file_google_api_http, file_kitchensink_v1_kitchen_sink,
  file_kitchensink_v1_legacy, file_kitchensink_v1_shelves, file_library_v1_library,
);

const all = [...randomTypes];
export const randomMessageTypes: readonly DescMessage[] = all.filter((desc) => desc.kind === "message");
const extensions: readonly DescExtension[] = all.filter((desc) => desc.kind === "extension");
const maxDepth = 4;

/** Returns a random message of a type. Most messages are valid, and some have values that no decoder returns. */
export function rollMessage(dice: Dice, desc: DescMessage, depth = 0): Message {
  const message = create(desc);
  if (desc.typeName === "google.protobuf.Any") return rollAny(dice, depth);
  if (desc.typeName === "google.protobuf.Timestamp") return { ...message, ...rollTime(dice) };
  if (desc.typeName === "google.protobuf.Duration") return { ...message, ...rollDuration(dice) };
  if (desc.typeName === "google.protobuf.FieldMask") return create(FieldMaskSchema, { paths: rollPaths(dice) });
  const density = 1 + dice.roll(4);
  for (const field of desc.fields) {
    const isNeeded = isRequiredField(field) || isWrapperDesc(desc) || desc.typeName === "google.protobuf.Value";
    if (!isNeeded && dice.roll(4) >= density) continue;
    if (depth >= maxDepth && field.message !== undefined && !isNeeded) continue;
    setField(dice, message, field, depth);
  }
  for (const extension of extensions)
    if (extension.extendee.typeName === desc.typeName && dice.roll(3) === 0) extend(dice, message, extension, depth);
  return message;
}

function extend(dice: Dice, message: Message, extension: DescExtension, depth: number): void {
  const field = { ...extension, kind: "field", parent: extension.extendee, oneof: undefined };
  try {
    setExtension(message, extension, rollFieldValue(dice, field, depth + 1));
  } catch {
    // The error is ignored, because the extension does not accept this value.
  }
}

function setField(dice: Dice, message: Message, field: DescField, depth: number): void {
  const value = rollFieldValue(dice, field, depth);
  const { localName, oneof } = field;
  Reflect.set(message, oneof?.localName ?? localName, oneof === undefined ? value : { case: localName, value });
}

type ValueType = Pick<DescField, "fieldKind" | "message" | "enum" | "scalar"> & {
  readonly parent: { readonly typeName: string };
  readonly oneof: object | undefined;
  readonly mapKey?: ScalarType;
  readonly longAsString?: boolean;
};

function rollFieldValue(dice: Dice, field: ValueType, depth: number): unknown {
  if (field.fieldKind === "list") return Array.from({ length: dice.roll(4) }, () => rollValue(dice, field, depth));
  if (field.fieldKind !== "map") return rollValue(dice, field, depth);
  const { mapKey } = field;
  const key = (): string => (mapKey === ScalarType.STRING ? rollText(dice) : String(rollScalar(dice, mapKey)));
  return Object.fromEntries(Array.from({ length: dice.roll(4) }, () => [key(), rollValue(dice, field, depth)]));
}

function rollValue(dice: Dice, field: ValueType, depth: number): unknown {
  const { message } = field;
  if (field.enum !== undefined) return dice.roll(5) === 0 ? dice.roll(9) : dice.oneOf(field.enum.values).number;
  if (message === undefined) {
    const value = rollScalar(dice, field.scalar);
    return field.longAsString === true && typeof value === "bigint" ? String(value) : value;
  }
  if (message.typeName === "google.protobuf.Struct" && field.parent.typeName !== "google.protobuf.Value")
    return rollObject(dice, 0);
  if (field.fieldKind === "message" && field.oneof === undefined && isWrapperDesc(message))
    return rollScalar(dice, message.fields[0].scalar);
  return rollMessage(dice, message, depth + 1);
}

const longs = [0n, 1n, -1n, 7n, 9_007_199_254_740_993n, 2n ** 63n - 1n, -(2n ** 63n)] as const;
const odd = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
const doubles = [0, -0, 1, 1.5, -2.25, 1e21, 1e-7, 0.1, ...odd];
// Only these floats are used, because protobuf-es writes other floats with a double's digits.
const floats = [0, -0, 1, 1.5, -2.25, 1e10, 2 ** -9, ...odd];

function rollScalar(dice: Dice, scalar: ScalarType | undefined): unknown {
  if (scalar === ScalarType.BOOL) return dice.roll(2) === 0;
  if (scalar === ScalarType.BYTES) return dice.bytes(9);
  if (scalar === ScalarType.FLOAT) return dice.oneOf(floats);
  if (scalar === ScalarType.DOUBLE) return dice.oneOf(doubles);
  if (scalar === ScalarType.STRING) return rollText(dice);
  if (scalar === ScalarType.INT64 || scalar === ScalarType.SINT64 || scalar === ScalarType.SFIXED64)
    return dice.oneOf(longs);
  if (scalar === ScalarType.UINT64 || scalar === ScalarType.FIXED64) return BigInt.asUintN(64, dice.oneOf(longs));
  if (scalar === ScalarType.UINT32 || scalar === ScalarType.FIXED32) return dice.oneOf([0, 1, 7, 2 ** 32 - 1]);
  return dice.oneOf([0, 1, -1, 7, 2 ** 31 - 1, -(2 ** 31)]);
}

// oxfmt-ignore
const pieces = [
  "a", "", "é", "\u2028", '"', "\\", "\n", "\u0000", "🌱", "\ud800", "\udfff", "__proto__", "7", "constructor",
];

function rollText(dice: Dice): string {
  const text = Array.from({ length: dice.roll(4) }, () => dice.oneOf(pieces)).join("");
  return dice.roll(8) === 0 ? text.padEnd(40, "x") : text;
}

const rollObject = (dice: Dice, depth: number): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: dice.roll(4) }, () => [rollText(dice), rollPlain(dice, depth + 1)]));

function rollPlain(dice: Dice, depth: number): unknown {
  const kind = dice.roll(depth > 2 ? 5 : 7);
  if (kind < 5) return [null, true, false, dice.oneOf(doubles), rollText(dice)][kind];
  return kind === 5 ? rollObject(dice, depth) : Array.from({ length: dice.roll(3) }, () => rollPlain(dice, depth + 1));
}

function rollAny(dice: Dice, depth: number): Message {
  const desc = dice.oneOf(randomMessageTypes);
  if (depth >= maxDepth || dice.roll(4) === 0) return create(AnySchema);
  try {
    const value = toBinary(desc, rollMessage(dice, desc, depth + 1));
    return create(AnySchema, { typeUrl: `x/${dice.roll(9) === 0 ? "unknown.Type" : desc.typeName}`, value });
  } catch {
    return create(AnySchema);
  }
}

function rollTime(dice: Dice): object {
  const span = 253_402_300_800 + 62_135_596_800;
  const second = Math.floor((dice.roll(2 ** 31) / 2 ** 31) * span) - 62_135_596_800 + dice.roll(86_400);
  const seconds = dice.oneOf([second, 0, -1, 253_402_300_799, 253_402_300_800, -62_135_596_800, -62_135_596_801]);
  return { seconds: BigInt(dice.roll(3) === 0 ? seconds : second), nanos: rollNanos(dice) };
}

function rollDuration(dice: Dice): object {
  const seconds = dice.oneOf([0, 1, -1, 90_061, 315_576_000_000, -315_576_000_000, 315_576_000_001]);
  return { seconds: BigInt(seconds), nanos: rollNanos(dice) };
}

const rollNanos = (dice: Dice): number =>
  dice.oneOf([0, 0, 0, 1, 120_000_000, 123_456_000, 999_999_999, -1, dice.roll(1_000_000_000)]);

function rollPaths(dice: Dice): string[] {
  // The first five paths can be written as a field mask in JSON.
  const names = ["id", "display_name", "a.b_c", "*", "_a", "address_line_1", "camelCase", "", "a,b"];
  return Array.from({ length: dice.roll(3) }, () => dice.oneOf(dice.roll(9) === 0 ? names : names.slice(0, 5)));
}
