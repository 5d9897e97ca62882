import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";

/** Maximum nesting depth of a sample, because a message type may contain itself. */
const depthMax = 3;

/** Returns messages with a value in every field. Each message has another member of each oneof. */
export function sampleMessages(desc: DescMessage): readonly Message[] {
  const count = Math.max(1, ...[...reachable(desc)].flatMap(({ oneofs }) => oneofs.map(({ fields }) => fields.length)));
  return Array.from({ length: count }, (_, member) => sampleOf(desc, member, 0));
}

function reachable(desc: DescMessage, found = new Set<DescMessage>()): ReadonlySet<DescMessage> {
  if (found.has(desc)) return found;
  found.add(desc);
  for (const { message } of desc.fields) if (message !== undefined) reachable(message, found);
  return found;
}

function sampleOf(desc: DescMessage, member: number, depth: number): Message {
  const sample = reflect(desc, create(desc));
  for (const field of desc.fields) {
    const { oneof } = field;
    const isChosen = oneof === undefined || oneof.fields.indexOf(field) === member % oneof.fields.length;
    const isTooDeep = field.message !== undefined && depth === depthMax;
    if (isChosen && !isTooDeep) setField(sample, field, member, depth);
  }
  return sample.message;
}

function setField(sample: ReflectMessage, field: DescField, member: number, depth: number): void {
  const value = (): unknown => {
    if (field.message !== undefined) return reflect(field.message, sampleOf(field.message, member, depth + 1));
    if (field.enum !== undefined) return field.enum.values.at(-1)?.number ?? 0;
    return scalarSample(field.scalar);
  };
  if (field.fieldKind === "list") for (const item of [value(), value()]) sample.get(field).add(item);
  else if (field.fieldKind === "map") sample.get(field).set(scalarSample(field.mapKey), value());
  else sample.set(field, value());
}

function scalarSample(scalar: ScalarType): unknown {
  switch (scalar) {
    case ScalarType.STRING:
      return "é5";
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return new Uint8Array([0, 255]);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return 300n;
    default:
      return 300;
  }
}
