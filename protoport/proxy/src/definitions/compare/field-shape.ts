import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** Returns the field of `type` with the same number as `field`, or otherwise the field with the same name. */
export function counterpartOf(field: DescField, type: DescMessage): DescField | undefined {
  return (
    type.fields.find(({ number }) => number === field.number) ?? type.fields.find(({ name }) => name === field.name)
  );
}

/** Returns whether a message distinguishes a default value from no value. */
export function hasPresence({ presence }: DescField): boolean {
  return presence !== FeatureSet_FieldPresence.IMPLICIT;
}
