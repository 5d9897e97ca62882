import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";

// Matches proto names that do not change by a conversion to lowerCamelCase and back. As in protoc, a leading underscore
// makes the first letter a capital.
const reversible = /^_?[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*$/;
const camel = /^[A-Za-z][A-Za-z0-9]*$/;
// Matches characters that paths with lowerCamelCase names cannot contain, and separators without a following name.
const outsideOfCamelPaths = /[^A-Za-z0-9.,]|(?:^|[.,])(?![A-Za-z])/;
const fieldIdentifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Parses a google.protobuf.FieldMask from its JSON form. Commas separate paths, and dots separate names.
 *
 * Names are proto names in lowerCamelCase. The JSON mapping cannot express a name that a conversion to lowerCamelCase
 * and back would change. As an extension, such a name is accepted unchanged if it has an underscore (`address_line_1`),
 * or else in backticks (`` `camelCase` ``). Each name has only one spelling. `*` means all fields.
 *
 * @param protoNames - whether proto names (`display_name`) are also allowed, as in URLs
 * @returns the mask with proto names, or `undefined` if the text has an invalid path
 */
export function parseFieldMask(text: string, protoNames: boolean): FieldMask | undefined {
  // All names are converted together, because converting single names takes twice as long.
  if (!outsideOfCamelPaths.test(text)) return create(FieldMaskSchema, { paths: toSnakeCase(text).split(",") });
  const paths: string[] = [];
  for (const path of text === "" ? [] : text.split(",")) {
    const names = path.split(".").map((name) => parseName(name, protoNames));
    if (names.includes(undefined)) return undefined;
    paths.push(names.join("."));
  }
  return create(FieldMaskSchema, { paths });
}

function toSnakeCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, "_$&").toLowerCase();
}

/**
 * Prints a mask's paths in the JSON mapping.
 *
 * @throws Error for an empty name, a comma or a backtick, or a name that lowerCamelCase and back would change
 */
export function printFieldMask(paths: readonly string[]): string {
  return paths.map((path) => path.split(".").map(printName).join(".")).join(",");
}

function parseName(text: string, protoNames: boolean): string | undefined {
  if (text === "*") return text;
  if (camel.test(text)) return toSnakeCase(text);
  const isQuoted = text.startsWith("`") && text.endsWith("`");
  const name = isQuoted ? text.slice(1, -1) : text;
  if (!fieldIdentifier.test(name)) return undefined;
  return protoNames || (!reversible.test(name) && isQuoted !== name.includes("_")) ? name : undefined;
}

function printName(name: string): string {
  if (reversible.test(name)) return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  // The conversion to lowerCamelCase does not change "*" and keys such as "a-b".
  if (/^[^A-Z_,`]+$/.test(name)) return name;
  throw new Error(`the field mask name ${JSON.stringify(name)} has no JSON form: it would be read as a different name`);
}
