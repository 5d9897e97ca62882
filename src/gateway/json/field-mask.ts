import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";

const camelCase = /^[A-Za-z][A-Za-z0-9]*$/;
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Parses a google.protobuf.FieldMask from its JSON form: paths separated by commas, names separated by dots, each name
 * in lowerCamelCase. `*` stands for all fields.
 *
 * @param protoNames - whether proto names (`display_name`) are allowed too, as URLs use both
 * @returns the mask with proto names; `undefined` when a path is not a field path
 */
export function parseFieldMask(text: string, protoNames: boolean): FieldMask | undefined {
  const paths: string[] = [];
  for (const path of text === "" ? [] : text.split(",")) {
    const names = path.split(".").map((name) => parseName(name, protoNames));
    if (names.includes(undefined)) return undefined;
    paths.push(names.join("."));
  }
  return create(FieldMaskSchema, { paths });
}

function parseName(text: string, protoNames: boolean): string | undefined {
  if (camelCase.test(text)) return text.replaceAll(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`);
  return text === "*" || (protoNames && identifier.test(text)) ? text : undefined;
}
