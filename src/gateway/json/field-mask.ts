import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";

// One path of dotted lowerCamelCase names. An underscore would not survive the way to proto names and back.
const camelPath = /^[a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*$/;
// The same with proto names, as people write them in a query. An underscore stands before a letter: behind
// any other the mask could not be written as JSON again.
const snakePath = /^[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*(?:\.[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*)*$/;

/**
 * Parses a google.protobuf.FieldMask from its JSON form: lowerCamelCase paths joined by commas.
 *
 * @param protoNames - whether proto names (`display_name`) are taken as well; JSON has the other
 * form only, in a URL both are in use
 * @returns the mask with proto names, or `undefined` when a path is no field path
 */
export function parseFieldMask(text: string, protoNames: boolean): FieldMask | undefined {
  const paths: string[] = [];
  for (const path of text === "" ? [] : text.split(",")) {
    if (camelPath.test(path)) paths.push(path.replaceAll(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`));
    else if (protoNames && snakePath.test(path)) paths.push(path);
    else return undefined;
  }
  return create(FieldMaskSchema, { paths });
}
