import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import { Edition, FeatureSet_JsonFormat } from "@bufbuild/protobuf/wkt";

/** Returns whether the editions feature `json_format` requires all implementations to write the same JSON. */
export function isJsonGuaranteed(desc: DescEnum | DescMessage): boolean {
  const formats = [desc, ...ancestorsOf(desc), desc.file].map(({ proto }) => proto.options?.features?.jsonFormat);
  const set = formats.find((format) => format !== undefined && format !== FeatureSet_JsonFormat.JSON_FORMAT_UNKNOWN);
  return set === undefined ? desc.file.edition !== Edition.EDITION_PROTO2 : set === FeatureSet_JsonFormat.ALLOW;
}

function ancestorsOf({ parent }: DescEnum | DescMessage): readonly DescMessage[] {
  return parent === undefined ? [] : [parent, ...ancestorsOf(parent)];
}
