import type { DescField } from "@bufbuild/protobuf";
import { getOption } from "@bufbuild/protobuf";
import { field_behavior, FieldBehavior } from "../gen/google/api/field_behavior_pb.ts";
import { isRequiredField } from "../messages/json/index.ts";

// `getOption` reads the option anew for each call.
const behaviorsOf = new WeakMap<DescField, readonly FieldBehavior[]>();

// AIP-203. The annotation is found by its number, whichever generated code a definition imports.
function has(field: DescField, behavior: FieldBehavior): boolean {
  if (field.proto.options === undefined) return false;
  const behaviors = behaviorsOf.get(field) ?? getOption(field, field_behavior);
  behaviorsOf.set(field, behaviors);
  return behaviors.includes(behavior);
}

/**
 * Returns whether a request must set a field: it is annotated so, or `required` in proto2. Of the members of a oneof
 * each can do without the others.
 */
export function isRequired(field: DescField): boolean {
  if (isOutputOnly(field) || (field.oneof !== undefined && field.oneof.fields.length > 1)) return false;
  return isRequiredField(field) || has(field, FieldBehavior.REQUIRED);
}

/** Returns whether only answers set a field. */
export function isOutputOnly(field: DescField): boolean {
  return has(field, FieldBehavior.OUTPUT_ONLY);
}

/** Returns whether only requests set a field. */
export function isInputOnly(field: DescField): boolean {
  return has(field, FieldBehavior.INPUT_ONLY);
}
