import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";

/** A message's update mask field, and the message type whose fields the mask's paths name. */
export interface UpdateMask {
  readonly field: DescField;
  readonly target: DescMessage;
}

/**
 * Returns a message's update mask (AIP-134) and the resource that the mask refers to. Returns `undefined` unless the
 * message has exactly one google.protobuf.FieldMask and one resource message.
 */
export function updateMaskOf({ fields }: DescMessage): UpdateMask | undefined {
  const singular = fields.filter((field) => field.fieldKind === "message");
  const [field, otherMask] = singular.filter(({ message }) => message.typeName === FieldMaskSchema.typeName);
  const [resource, other] = singular.filter(({ message }) => !message.typeName.startsWith("google.protobuf."));
  if (field === undefined || resource === undefined || otherMask !== undefined || other !== undefined) return undefined;
  return { field, target: resource.message };
}

/** Returns whether a path, with proto or JSON names, `*` and map keys, names a field in a message. */
export function hasPath(target: DescMessage, path: string): boolean {
  let message: DescMessage | undefined = target;
  const names = path.match(/`[^`]*`|[^.]+/g) ?? [];
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at];
    if (name === "*") continue;
    const field: DescField | undefined = message?.fields.find((each) => each.name === name || each.jsonName === name);
    if (field === undefined) return false;
    message = field.message;
    if (message?.typeName.startsWith("google.protobuf.") === true) return true;
    // The next name is a map key.
    if (field.fieldKind === "map") at += 1;
  }
  return names.length > 0;
}
