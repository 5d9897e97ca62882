import type { DescField } from "@bufbuild/protobuf";
import { getOption } from "@bufbuild/protobuf";
import { field_behavior, FieldBehavior } from "../protobuf/gen/google/api/field_behavior_pb.ts";
import { isRequiredField } from "../protobuf/index.ts";

// Cached, because `getOption` decodes the option on each call.
const behaviorsOf = new WeakMap<DescField, readonly FieldBehavior[]>();

// Returns whether a field has an AIP-203 behavior. The option is found by extension number, because a definition may
// import another copy of the option's generated code.
function hasBehavior(field: DescField, behavior: FieldBehavior): boolean {
  if (field.proto.options === undefined) return false;
  const behaviors = behaviorsOf.get(field) ?? getOption(field, field_behavior);
  behaviorsOf.set(field, behaviors);
  return behaviors.includes(behavior);
}

/** Returns whether requests must set a field, by proto2 or the behavior REQUIRED. Members of a oneof are optional. */
export function isRequired(field: DescField): boolean {
  if (isOutputOnly(field) || (field.oneof !== undefined && field.oneof.fields.length > 1)) return false;
  return isRequiredField(field) || hasBehavior(field, FieldBehavior.REQUIRED);
}

/** Returns whether a field is set only in responses (OUTPUT_ONLY). */
export function isOutputOnly(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.OUTPUT_ONLY);
}

/** Returns whether a field is set only in requests (INPUT_ONLY). */
export function isInputOnly(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.INPUT_ONLY);
}
