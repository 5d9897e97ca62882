import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";

const timestampName = "google.protobuf.Timestamp";

/**
 * Returns a function that makes the `nanos` of timestamps in a message positive, or `undefined` if the type contains no
 * timestamp. ts-proto writes a `Date` before 1970 with negative `nanos` if it has milliseconds, which JSON cannot have.
 */
export function createTimestampNormalizer(desc: DescMessage): ((message: Message) => void) | undefined {
  const fieldsOf = findTimestampFields(desc);
  if (!fieldsOf.has(desc) && desc.typeName !== timestampName) return undefined;
  const normalize = (type: DescMessage, message: object): void => {
    if (type.typeName === timestampName) return makePositive(message);
    for (const field of fieldsOf.get(type) ?? []) {
      const { message: inner } = field;
      if (inner === undefined) continue;
      for (const each of messagesIn(field, message)) normalize(inner, each);
    }
  };
  return (message) => normalize(desc, message);
}

/** Returns the fields of a message type, and of all types in it, that contain timestamps at any depth. */
function findTimestampFields(desc: DescMessage): ReadonlyMap<DescMessage, readonly DescField[]> {
  const types = new Set([desc]);
  for (const type of types) for (const { message } of type.fields) if (message !== undefined) types.add(message);
  const found = new Map<DescMessage, readonly DescField[]>();
  const contains = ({ message }: DescField): boolean =>
    message !== undefined && (message.typeName === timestampName || found.has(message));
  // Each round finds types that contain the types of the rounds before.
  for (let size = -1; size < found.size;) {
    size = found.size;
    for (const type of types) {
      const fields = type.fields.filter(contains);
      if (fields.length > 0) found.set(type, fields);
    }
  }
  return found;
}

/** Returns the messages in a field, which may be a list, a map or a member of a oneof. */
function messagesIn({ fieldKind, localName, oneof }: DescField, message: object): readonly object[] {
  const owner: unknown = oneof === undefined ? message : Reflect.get(message, oneof.localName);
  if (oneof !== undefined && Reflect.get(Object(owner), "case") !== localName) return [];
  const value: unknown = Reflect.get(Object(owner), oneof === undefined ? localName : "value");
  if (typeof value !== "object" || value === null) return [];
  return fieldKind === "message" ? [value] : Object.values(value);
}

function makePositive(timestamp: { seconds?: bigint; nanos?: number }): void {
  const { seconds = 0n, nanos = 0 } = timestamp;
  if (nanos >= 0 || nanos <= -1e9) return;
  timestamp.seconds = seconds - 1n;
  timestamp.nanos = nanos + 1e9;
}
