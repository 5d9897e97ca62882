import { isDeepStrictEqual } from "node:util";
import { toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { readJson } from "../../../src/protobuf/messages/json/index.ts";

/**
 * A JSONTestSuite case. Texts whose names begin with `y_` are JSON, and those with `n_` are not. Texts with `i_` may be
 * accepted or refused.
 */
export type JsonCase = { readonly name: string; readonly input: string };

/** Objects with a duplicate name, which RFC 8259 §4 allows and protoport/docs/reference/rest.md refuses. */
const refused = new Set(["y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"]);

/**
 * Reads a case's text as a google.protobuf.Value.
 *
 * @returns what is wrong, or `undefined` if the text is accepted with its value, or refused, as it should be
 */
export function problemOf({ name, input }: JsonCase, codegen: boolean): string | undefined {
  let value: unknown;
  try {
    value = toJson(ValueSchema, readJson(ValueSchema, Buffer.from(input), { codegen }));
  } catch (error) {
    if (!(error instanceof ConnectError)) return `${name}: ${String(error)}`;
    return name.startsWith("y_") && !refused.has(name) ? `${name} is refused: ${error.message}` : undefined;
  }
  if (name.startsWith("n_") || refused.has(name)) return `${name} is accepted`;
  return isDeepStrictEqual(value, JSON.parse(input)) ? undefined : `${name} is read as ${JSON.stringify(value)}`;
}
