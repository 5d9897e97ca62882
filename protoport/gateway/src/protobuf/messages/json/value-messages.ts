import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type ListValue, NullValue, type Struct, type Value } from "@bufbuild/protobuf/wkt";
import { throwBailOut } from "../codegen/index.ts";
import { setOwn } from "./field-values.ts";
import type { ReadState } from "./parse-plain.ts";

// Messages are object literals with the properties that `create()` sets, because literals are faster for large arrays.

/**
 * Converts a JSON value to a google.protobuf.Value, and counts its strings, including names.
 *
 * @throws bailOut for a number beyond a double's range, and for a lone surrogate
 */
export function toValueMessage(json: JsonValue, state: ReadState): Value {
  return { $typeName: "google.protobuf.Value", kind: toKind(json, state) };
}

function toKind(json: JsonValue, state: ReadState): Value["kind"] {
  switch (typeof json) {
    case "string":
      if (state.mayHaveLoneSurrogates && !json.isWellFormed()) return throwBailOut();
      state.strings++;
      return { case: "stringValue", value: json };
    case "number":
      return Number.isFinite(json) ? { case: "numberValue", value: json } : throwBailOut();
    case "boolean":
      return { case: "boolValue", value: json };
    default:
      if (json === null) return { case: "nullValue", value: NullValue.NULL_VALUE };
      return Array.isArray(json)
        ? { case: "listValue", value: toListMessage(json, state) }
        : { case: "structValue", value: toStructMessage(json, state) };
  }
}

/** Converts a JSON array to a google.protobuf.ListValue, as {@link toValueMessage} does for a value. */
export function toListMessage(json: readonly JsonValue[], state: ReadState): ListValue {
  const values: Value[] = [];
  for (const item of json) values.push(toValueMessage(item, state));
  return { $typeName: "google.protobuf.ListValue", values };
}

/** Converts a JSON object to a google.protobuf.Struct, as {@link toValueMessage} does for a value. */
export function toStructMessage(json: JsonObject, state: ReadState): Struct {
  const fields: Struct["fields"] = {};
  for (const name in json) {
    state.strings++;
    const value = json[name];
    if (value !== undefined) setOwn(fields, name, toValueMessage(value, state));
  }
  return { $typeName: "google.protobuf.Struct", fields };
}
