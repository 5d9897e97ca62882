import type { DescField, DescMethodUnary, JsonValue, Message, ScalarType } from "@bufbuild/protobuf";
import { toJson } from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import type { WriteJsonOptions } from "../json/write-json.ts";
import { writeJson } from "../json/write-json.ts";
import { findProtoField } from "./field-path.ts";

/** An answer, before it is bytes on a connection. */
export interface RestResponse {
  readonly httpStatus: number;
  /** `undefined` when there is no body. */
  readonly contentType: string | undefined;
  /** `undefined` when there is none, as in a 204. */
  readonly body: Uint8Array | undefined;
}

/** How answers are written. */
export interface ResponseOptions {
  /** The status of an answer of type google.protobuf.Empty: 200 with `{}`, or 204 without a body. */
  readonly emptyResponse: 200 | 204;
  readonly writeJson: WriteJsonOptions;
}

const contentType = "application/json";
const noContent: RestResponse = { httpStatus: 204, contentType: undefined, body: undefined };
const utf8 = new TextEncoder();

/**
 * Makes the function that turns the response message of an RPC into the answer.
 *
 * @param responseBody - the field that is the body; `""` for the whole message
 * @throws Error when the response has no such field
 */
export function createResponseWriter(
  method: DescMethodUnary,
  responseBody: string,
  options: ResponseOptions,
): (message: Message) => RestResponse {
  const { output } = method;
  if (responseBody !== "") {
    const field = findProtoField(output, responseBody);
    if (field === undefined) throw new Error(`response_body "${responseBody}" is no field of ${output.typeName}`);
    return (message) => ok(JSON.stringify(fieldToJson(field, message, options)));
  }
  if (output.typeName === "google.protobuf.Empty") {
    const empty = options.emptyResponse === 204 ? noContent : ok("{}");
    return () => empty;
  }
  return (message) => ok(writeJson(output, message, options.writeJson));
}

function ok(json: string): RestResponse {
  return { httpStatus: 200, contentType, body: utf8.encode(json) };
}

function fieldToJson(field: DescField, message: Message, options: ResponseOptions): JsonValue {
  const json = toJson(field.parent, message, options.writeJson);
  const name = options.writeJson.useProtoFieldName === true ? field.name : field.jsonName;
  const value = typeof json === "object" && json !== null && !Array.isArray(json) ? json[name] : undefined;
  return value ?? zeroJson(field);
}

// What is left out of an object still has to be something where it is the whole body.
function zeroJson(field: DescField): JsonValue {
  switch (field.fieldKind) {
    case "list":
      return [];
    case "map":
      return {};
    case "enum":
      return field.enum.values[0]?.name ?? 0;
    case "message":
      return null;
    default:
      return zeroScalarJson(field.scalar);
  }
}

function zeroScalarJson(scalar: ScalarType): JsonValue {
  const zero = scalarZeroValue(scalar, true);
  return zero instanceof Uint8Array ? "" : zero;
}
