import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";

/**
 * Returns an empty message, and a message with all fields set, to find wrong names and types in expressions. Lists have
 * one element. Maps with string keys have an entry for each name or string in `expressions`, so that the expressions
 * may read any key.
 */
export function sampleMessages(type: DescMessage, expressions: Iterable<string>): readonly Message[] {
  const empty = reflect(type);
  const full = reflect(type);
  const words = wordsOf(expressions);
  for (const field of type.fields.filter(({ fieldKind }) => fieldKind === "map")) setField(empty, field, words);
  for (const member of type.members) setField(full, member.kind === "oneof" ? member.fields[0] : member, words);
  return [empty.message, full.message];
}

/** Returns the names and strings in expressions. Each name or string may be a map key. */
function wordsOf(expressions: Iterable<string>): readonly string[] {
  const found = [...expressions].flatMap((expression) => [
    ...expression.matchAll(/"(?<double>[^"\\]*)"|'(?<single>[^'\\]*)'|(?<name>[A-Za-z_]\w*)/g),
  ]);
  return ["a", ...found.map(({ groups = {} }) => groups["double"] ?? groups["single"] ?? groups["name"] ?? "")];
}

function setField(message: ReflectMessage, field: DescField | undefined, words: readonly string[]): void {
  switch (field?.fieldKind) {
    case "list":
      message.get(field).add(valueOf(field));
      break;
    case "map":
      for (const key of field.mapKey === ScalarType.STRING ? words : [scalarOf(field.mapKey)])
        message.get(field).set(key, valueOf(field));
      break;
    case "scalar":
    case "enum":
    case "message":
      message.set(field, valueOf(field));
      break;
    case undefined:
  }
}

function valueOf({ scalar, enum: enumeration, message }: DescField): unknown {
  if (message !== undefined) return reflect(message, create(message));
  if (enumeration !== undefined) return (enumeration.values[1] ?? enumeration.values[0])?.number;
  return scalar === undefined ? undefined : scalarOf(scalar);
}

function scalarOf(scalar: ScalarType): unknown {
  switch (scalar) {
    case ScalarType.STRING:
      return "a";
    case ScalarType.BYTES:
      return new Uint8Array(1);
    case ScalarType.BOOL:
      return true;
    // A number is also accepted for 64-bit integers.
    default:
      return 1;
  }
}
