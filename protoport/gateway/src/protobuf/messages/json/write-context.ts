import type { DescMessage, JsonValue, JsonWriteOptions } from "@bufbuild/protobuf";
import type { CodegenOptions } from "../codegen/index.ts";

/** Options for writing messages as JSON, from Connect and from one service. */
export interface JsonStyle extends Partial<JsonWriteOptions>, CodegenOptions {
  /** Whether 64-bit integers are written as numbers if a double can represent them exactly. */
  readonly int64Numbers?: boolean;
}

/** Converts one type's values to values for `JSON.stringify`. */
export interface ToJson {
  /** @throws Error if the value has another type, or has no JSON form */
  toJson(value: unknown): JsonValue;
}

/** The converter for one type's values, or the JavaScript type's name if the values need no conversion. */
export type JsonForm = "string" | "boolean" | "number" | ToJson;

/** The JSON writers for message types. A writer is compiled on first use, because a type may contain itself. */
export interface MessageForms {
  readonly style: JsonStyle;
  writerOf(desc: DescMessage): ToJson;
}
